use serde::Deserialize;
use serde_json::value::RawValue;

use super::Failure;
use crate::token::Token;

/// What every method answers: <https://core.telegram.org/bots/api#making-requests>.
#[derive(Deserialize)]
pub(crate) struct Answer<'a> {
    ok: bool,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(default)]
    error_code: i64,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    parameters: Option<Parameters>,
}

/// <https://core.telegram.org/bots/api#responseparameters>
#[derive(Deserialize, Default)]
struct Parameters {
    #[serde(default)]
    migrate_to_chat_id: Option<i64>,
    #[serde(default)]
    retry_after: Option<u64>,
}

impl<'a> Answer<'a> {
    /// The result, still as JSON.
    pub(crate) fn read(text: &'a [u8], token: &Token) -> Result<Box<RawValue>, Failure> {
        Self::result(text, token).map(ToOwned::to_owned)
    }

    /// The result in the text that was read.
    pub(crate) fn result(text: &'a [u8], token: &Token) -> Result<&'a RawValue, Failure> {
        let answer: Answer<'a> = serde_json::from_slice(text)
            .map_err(|error| Failure::unreadable(format!("the answer is no answer: {error}")))?;
        match (answer.ok, answer.result) {
            (true, Some(result)) => Ok(result),
            (true, None) => Err(Failure::unreadable("the answer has no result")),
            (false, _) => {
                let parameters = answer.parameters.unwrap_or_default();
                let said = answer.description.unwrap_or_default();
                let said: String = token.secret().redacted(&said).chars().take(300).collect();
                Err(Failure::Refused {
                    code: answer.error_code,
                    description: said,
                    retry_after: parameters.retry_after,
                    moved_to: parameters.migrate_to_chat_id,
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// I1: what is no answer is told as such, and one with more fields is one.
    #[test]
    fn what_is_no_answer_is_told_as_such() {
        let token = Token::new("1:secret").unwrap();
        for wrong in [&b""[..], b"{", b"[]", b"null", b"{\"ok\":true}", b"\xff\xfe", b"<html>"] {
            let read = Answer::read(wrong, &token);
            assert!(matches!(read, Err(Failure::NoAnswer(_))), "{wrong:?} gave {read:?}");
        }
        let more = br#"{"ok":true,"result":[1],"hologram":{}}"#;
        assert_eq!(Answer::read(more, &token).unwrap().get(), "[1]");
    }

    /// I7: words that repeat the address are told without the token.
    #[test]
    fn a_refusal_does_not_repeat_the_token() {
        let token = Token::new("1:secret").unwrap();
        let said = br#"{"ok":false,"error_code":404,"description":"no /bot1:secret/getMee"}"#;
        let failure = Answer::read(said, &token).unwrap_err();
        assert_eq!(failure.to_string(), "404: no /bot\u{2026}/getMee");
    }
}
