//! teloxide's dispatcher, with a listener that reads the same updates.

use std::convert::Infallible;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use botmesh_telegram::testing::FakeTelegram;
use futures_util::stream::{self, BoxStream};
use teloxide::dispatching::{Dispatcher, UpdateFilterExt as _};
use teloxide::error_handlers::LoggingErrorHandler;
use teloxide::payloads::SendMessage;
use teloxide::stop::{StopToken, mk_stop_token};
use teloxide::types::{Message, Update, UpdateKind};
use teloxide::update_listeners::{AsUpdateStream, UpdateListener};
use teloxide::{Bot, dptree};

use crate::meter::{Measured, Meter};
use crate::updates;

struct Listener {
    updates: Vec<String>,
    stop: StopToken,
}

impl UpdateListener for Listener {
    type Err = Infallible;

    fn stop_token(&mut self) -> StopToken {
        self.stop.clone()
    }
}

impl<'a> AsUpdateStream<'a> for Listener {
    type StreamErr = Infallible;
    type Stream = BoxStream<'a, Result<Update, Infallible>>;

    fn as_stream(&'a mut self) -> Self::Stream {
        // What cannot be read is not answered, which ends the measurement.
        let read = self.updates.iter().filter_map(|update| serde_json::from_str(update).ok());
        let messages = read.filter(|it: &Update| matches!(it.kind, UpdateKind::Message(_)));
        Box::pin(stream::iter(messages.map(Ok)))
    }
}

/// Makes the request and writes it, as a send does before it calls.
async fn answer(message: Message, meter: Arc<Meter>) -> Result<(), serde_json::Error> {
    black_box(serde_json::to_vec(&SendMessage::new(message.chat.id, "Hello!"))?);
    meter.reply();
    Ok(())
}

/// Answers all updates.
pub(crate) async fn run(file: &Path, warm: u64) -> Result<Measured> {
    let updates = updates::read(file)?;
    let meter = Arc::new(Meter::new(warm, updates.len() as u64));
    // The dispatcher asks once who the bot is.
    let platform = FakeTelegram::start().await?;
    let bot = Bot::new(FakeTelegram::TOKEN).set_api_url(platform.address().parse()?);
    let handler = teloxide::types::Update::filter_message()
        .filter(|message: Message| message.text() == Some("hi"))
        .endpoint(answer);
    let (stop, _flag) = mk_stop_token();
    let mut dispatcher =
        Dispatcher::builder(bot, handler).dependencies(dptree::deps![Arc::clone(&meter)]).build();
    dispatcher.dispatch_with_listener(Listener { updates, stop }, LoggingErrorHandler::new()).await;
    meter.measured().await
}
