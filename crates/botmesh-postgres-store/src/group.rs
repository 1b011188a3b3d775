//! Sends the requests of one kind that are ready at the same moment together, in one statement: they
//! share its way, its transaction and the write to the disk that it waits for.

use std::collections::VecDeque;
use std::sync::Arc;

use botmesh_sql::{Row, Statement, Value};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::driver::{PostgresDriver, Repeat};
use crate::failure::Failure;
use crate::lines::{self, Line, tell};
use crate::protocol::Argument;

/// So many requests go in one statement at most.
const MOST: usize = 64;
/// So many bytes of texts go in one statement at most, if one request alone has not more.
const MOST_BYTES: usize = 512 * 1024;

type Request = Vec<Value>;
type Answer = Result<Row, Failure>;
type Part = lines::Part<Request, Answer>;

/// How a request is sent.
#[derive(Debug, Clone)]
pub(crate) struct Sending {
    /// Executes one request. The first value is its chat; a value that is a text in one request is
    /// a text in all, and the others are never texts. It gives one row.
    pub(crate) alone: Statement,
    /// Executes several, whose values are lists, one after the other. It gives one row for each.
    pub(crate) together: Statement,
    /// Whether a request for which nothing was done is repeated while the server is away.
    pub(crate) is_patient: bool,
}

/// The requests of one kind.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    line: Arc<Line<Request, Answer>>,
    courier: Arc<Courier>,
}

impl Group {
    pub(crate) fn new(driver: PostgresDriver, sending: Sending) -> Self {
        let (line, courier) = (Arc::default(), Arc::new(Courier { driver, sending }));
        Self { line, courier }
    }

    /// Executes a request over connections that live on the runtime `home`. When this is dropped
    /// before the request was sent, it is not sent; afterwards it is executed all the same.
    pub(crate) async fn send(&self, request: Request, home: &Handle) -> Answer {
        let (waiter, answer) = oneshot::channel();
        if let Some(sender) = self.line.enter([(request, waiter)]) {
            home.spawn(Arc::clone(&self.courier).run(sender));
        }
        // The runtime has ended otherwise.
        answer.await.unwrap_or_else(|_| Err(Failure::sent(sqlx::Error::WorkerCrashed)))
    }
}

#[derive(Debug)]
struct Courier {
    driver: PostgresDriver,
    sending: Sending,
}

impl Courier {
    async fn run(self: Arc<Self>, mut sender: lines::Sender<Request, Answer>) {
        while let Some(parts) = sender.next(take).await {
            self.carry(parts).await;
        }
    }

    async fn carry(self: &Arc<Self>, parts: Vec<Part>) {
        let answered = match parts.as_slice() {
            [(request, _)] => self.attempt(&self.sending.alone, request).await,
            _ => {
                let columns = Columns::of(&parts);
                self.attempt(&self.sending.together, &columns.arguments()).await
            }
        };
        match answered {
            Ok(rows) => {
                // Too few are as bad as none: nobody knows whose they are.
                let mut rows = Some(rows).filter(|rows| rows.len() == parts.len());
                let mut rows = rows.iter_mut().flat_map(|rows| rows.drain(..));
                for (_, waiter) in parts {
                    tell(waiter, Ok(rows.next().unwrap_or_else(|| Row::new(Vec::new()))));
                }
            }
            Err(failure) if self.is_worth_another(&failure, parts.len()) => self.part(parts),
            Err(failure) => {
                for (_, waiter) in parts {
                    tell(waiter, Err(failure.clone()));
                }
            }
        }
    }

    async fn attempt<V: crate::protocol::Bind>(
        &self,
        statement: &Statement,
        values: &[V],
    ) -> Result<Vec<Row>, Failure> {
        let response = self.driver.connections.settings().response;
        let answered = self.driver.attempt_with(response, statement, values).await;
        answered.inspect_err(|failure| {
            if failure.is_pooled() {
                self.driver.connections.stop_preparing();
            }
        })
    }

    /// Whether requests for which this failed are sent once more, each by itself: surely nothing was
    /// done for any, and it may be the fault of one of them, or pass.
    fn is_worth_another(&self, failure: &Failure, requests: usize) -> bool {
        let may_be_of_one = requests > 1 && failure.is_answered();
        let may_pass = self.sending.is_patient && failure.is_transient();
        failure.is_unexecuted() && (may_be_of_one || may_pass)
    }

    /// Sends each of them by itself, those of one chat one after the other.
    fn part(self: &Arc<Self>, parts: Vec<Part>) {
        let mut parts = parts.into_iter().peekable();
        while let Some(first) = parts.next() {
            let mut of_chat = vec![first];
            while let Some(next) =
                parts.next_if(|next| chat(next) == of_chat.first().and_then(chat))
            {
                of_chat.push(next);
            }
            let courier = Arc::clone(self);
            Handle::current().spawn(async move {
                for (request, waiter) in of_chat {
                    tell(waiter, courier.alone(request).await);
                }
            });
        }
    }

    async fn alone(&self, request: Request) -> Answer {
        let statement = &self.sending.alone;
        let rows = if self.sending.is_patient {
            self.driver.insist(Repeat::IfNotExecuted, statement, request).await?
        } else {
            self.attempt(statement, &request).await?
        };
        Ok(rows.into_iter().next().unwrap_or_else(|| Row::new(Vec::new())))
    }
}

/// Takes what goes in one statement of what waits, in the order of the chats. Those of one chat stay
/// in the order in which they came.
fn take(waiting: &mut VecDeque<Part>) -> Option<Vec<Part>> {
    let mut bytes = 0;
    let fits = |(request, _): &&Part| {
        bytes += request.iter().filter_map(text).map(str::len).sum::<usize>();
        bytes <= MOST_BYTES
    };
    let count = waiting.iter().take(MOST).take_while(fits).count();
    let count = count.max(1).min(waiting.len());
    let mut parts: Vec<Part> = waiting.drain(..count).collect();
    parts.sort_by(|one, other| chat(one).cmp(&chat(other)));
    (!parts.is_empty()).then_some(parts)
}

fn chat((request, _): &Part) -> Option<&str> {
    request.first().and_then(text)
}

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

/// The values of several requests, as lists.
#[derive(Debug)]
struct Columns<'a>(Vec<Column<'a>>);

#[derive(Debug)]
enum Column<'a> {
    Texts(Vec<&'a [u8]>),
    Integers(Vec<Option<i64>>),
}

impl<'a> Columns<'a> {
    fn of(parts: &'a [Part]) -> Self {
        let first = parts.first().map_or(&[][..], |(request, _)| request);
        let column = |(place, value): (usize, &Value)| {
            let values = parts.iter().map(move |(request, _)| request.get(place));
            match value {
                Value::Text(_) => Column::Texts(
                    values
                        .map(|value| value.and_then(text).unwrap_or_default().as_bytes())
                        .collect(),
                ),
                _ => Column::Integers(
                    values
                        .map(|value| match value {
                            Some(Value::Integer(integer)) => Some(*integer),
                            _ => None,
                        })
                        .collect(),
                ),
            }
        };
        Self(first.iter().enumerate().map(column).collect())
    }

    fn arguments(&'a self) -> Vec<Argument<'a>> {
        let argument = |column: &'a Column<'_>| match column {
            Column::Texts(texts) => Argument::Texts(texts),
            Column::Integers(integers) => Argument::Optional(integers),
        };
        self.0.iter().map(argument).collect()
    }
}

#[cfg(test)]
mod tests;
