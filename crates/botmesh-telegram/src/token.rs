use std::fmt;

use botmesh_core::provider::Secret;

use crate::SettingsError;

/// The token that BotFather gave for a bot, such as `123456:ABC-DEF`. It is shown nowhere: every
/// address of the API has it, so errors are told without addresses.
#[derive(Clone)]
pub(crate) struct Token {
    id: u64,
    secret: Secret,
}

impl Token {
    pub(crate) fn new(text: &str) -> Result<Self, SettingsError> {
        let text = text.trim();
        let (id, key) = text.split_once(':').ok_or(SettingsError::Token)?;
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        // What is in a path of an address must not change that path.
        if key.is_empty() || key.len() > 128 || !key.chars().all(plain) {
            return Err(SettingsError::Token);
        }
        let id = id.parse().map_err(|_| SettingsError::Token)?;
        Ok(Self { id, secret: Secret::new(text) })
    }

    /// The user id of the bot, which is no secret.
    pub(crate) const fn bot_id(&self) -> u64 {
        self.id
    }

    pub(crate) const fn secret(&self) -> &Secret {
        &self.secret
    }

    /// A secret for webhooks that all replicas find by themselves, and that a restart keeps.
    pub(crate) fn webhook_secret(&self) -> Secret {
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, self.secret.reveal().as_bytes());
        let tag = ring::hmac::sign(&key, b"botmesh-telegram webhook secret");
        let text: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        Secret::new(text)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({}:…)", self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// I7: the token is in no Debug output, and nothing that would change an address is a token.
    #[test]
    fn a_token_is_checked_and_not_shown() {
        let token = Token::new(" 123456:AA-bb_9 \n").unwrap();
        assert_eq!(format!("{token:?}"), "Token(123456:…)");
        assert_eq!(token.secret().reveal(), "123456:AA-bb_9");
        for wrong in ["", "123456", "bot:AA", "123456:", "123456:a/../b", "123456:a?b", "1:é"] {
            assert!(Token::new(wrong).is_err(), "{wrong:?} was taken");
        }
    }

    /// I7: the secret of the webhook does not give the token away, and is the same on each replica.
    #[test]
    fn the_secret_of_the_webhook_follows_from_the_token() {
        let secret = Token::new("1:a").unwrap().webhook_secret();
        assert_eq!(secret.reveal(), Token::new("1:a").unwrap().webhook_secret().reveal());
        assert_ne!(secret.reveal(), Token::new("1:b").unwrap().webhook_secret().reveal());
        assert_eq!(secret.reveal().len(), 64);
    }
}
