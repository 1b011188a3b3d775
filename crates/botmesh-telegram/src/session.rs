//! What both ways to receive have in common: the bot's own name, failures that may pass, and
//! answers to presses.

use botmesh_core::provider::{ConnectionState, ProviderError, Session};
use serde_json::Value;
use teloxide_core::payloads::{AnswerCallbackQuery, GetMe};
use teloxide_core::types::CallbackQueryId;
use tokio::sync::mpsc;

use crate::api::Failure;
use crate::telegram::Inner;
use crate::trouble::Trouble;
use crate::update::Recipient;

impl Inner {
    /// Asks who the bot is, for as long as it takes.
    ///
    /// # Errors
    /// When Telegram does not know the token.
    pub(crate) async fn introduce(&self, session: &Session) -> Result<Recipient, ProviderError> {
        let mut trouble = Trouble::default();
        loop {
            match self.call(&GetMe::new()).await {
                Ok(me) => {
                    let me: Value = serde_json::from_str(me.get()).unwrap_or_default();
                    let username = me["username"].as_str().map(str::to_owned);
                    tracing::info!(
                        provider = %self.id,
                        bot = self.api.token().bot_id(),
                        username,
                        "Telegram knows the bot"
                    );
                    return Ok(Recipient::new(self.id.clone(), username));
                }
                Err(failure) => self.sit_out(session, failure, &mut trouble).await?,
            }
        }
    }

    /// Waits after a failure that may pass, and tells it when it is new.
    ///
    /// # Errors
    /// The failure, when it does not pass.
    pub(crate) async fn sit_out(
        &self,
        session: &Session,
        failure: Failure,
        trouble: &mut Trouble,
    ) -> Result<(), ProviderError> {
        if let Some(wait) = failure.wait() {
            tracing::debug!(?wait, "Telegram wants fewer calls");
            tokio::time::sleep(wait).await;
            return Ok(());
        }
        let error = failure.into_error(&self.id);
        if !error.is_transient() {
            return Err(error);
        }
        session.set_state(ConnectionState::Connecting);
        let (wait, news) = trouble.again();
        if news {
            session.report(error);
        } else {
            tracing::debug!(%error, ?wait, "Telegram is tried again");
        }
        tokio::time::sleep(wait).await;
        Ok(())
    }

    /// Answers presses, so that their buttons stop waiting. An answer that fails is of no
    /// consequence: the button stops by itself.
    pub(crate) async fn answer_presses(&self, mut pressed: mpsc::Receiver<String>) {
        while let Some(press) = pressed.recv().await {
            let answer = AnswerCallbackQuery::new(CallbackQueryId(press));
            if let Err(failure) = self.call(&answer).await {
                tracing::debug!(%failure, "a press was not answered");
                if let Some(wait) = failure.wait() {
                    tokio::time::sleep(wait).await;
                }
            }
        }
    }
}
