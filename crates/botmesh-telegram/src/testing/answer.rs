use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// An error of the API: code, words, and parameters.
#[derive(Debug, Clone)]
pub(super) struct Refusal(pub(super) u16, pub(super) String, pub(super) Value);

impl Refusal {
    pub(super) fn bad(words: &str) -> Self {
        Self(400, format!("Bad Request: {words}"), Value::Null)
    }
}

/// The answer to a call, as it is documented.
pub(super) fn answer(result: Result<Value, Refusal>) -> Response {
    let (status, body) = match result {
        Ok(result) => (200, json!({ "ok": true, "result": result })),
        Err(Refusal(code, words, parameters)) => {
            let mut body = json!({ "ok": false, "error_code": code, "description": words });
            if !parameters.is_null() {
                body["parameters"] = parameters;
            }
            (code, body)
        }
    };
    raw(status, body.to_string().into_bytes())
}

pub(super) fn raw(status: u16, body: Vec<u8>) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, [(CONTENT_TYPE, "application/json")], body).into_response()
}
