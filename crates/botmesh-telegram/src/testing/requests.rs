use axum::extract::{FromRequest, Multipart, Request};
use serde_json::{Map, Value};

use super::Call;

/// The longest body that is read.
const LONGEST: usize = 64 << 20;

/// Reads a call of `method`, as JSON or as a form.
pub(super) async fn read(method: &str, request: Request) -> Option<Call> {
    let kind = request.headers().get("content-type").and_then(|value| value.to_str().ok());
    let is_form = kind.is_some_and(|kind| kind.starts_with("multipart/form-data"));
    let mut call = Call {
        method: method.to_owned(),
        chat: 0,
        fields: Value::Null,
        files: Vec::new(),
        made: Vec::new(),
    };
    if is_form {
        let mut form = Multipart::from_request(request, &()).await.ok()?;
        let mut fields = Map::new();
        while let Some(field) = form.next_field().await.ok()? {
            let name = field.name()?.to_owned();
            if field.file_name().is_some() {
                call.files.push(field.bytes().await.ok()?.len());
            } else {
                fields.insert(name, field.text().await.ok()?.into());
            }
        }
        call.fields = fields.into();
    } else {
        let body = axum::body::to_bytes(request.into_body(), LONGEST).await.ok()?;
        call.fields = serde_json::from_slice(&body).unwrap_or_default();
    }
    call.chat = call.number("chat_id").unwrap_or(0);
    Some(call)
}
