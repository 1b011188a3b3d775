use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use reqwest::multipart::{Form, Part};
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::Value;

use super::Failure;

/// A call of a method with fields and perhaps files:
/// <https://core.telegram.org/bots/api#sending-files>.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    method: &'static str,
    fields: Fields<'a>,
    files: Vec<File>,
}

/// The fields of a call, each once.
#[derive(Debug, Default)]
pub(crate) struct Fields<'a>(Vec<(&'static str, Field<'a>)>);

/// What a field says.
#[derive(Debug)]
pub(crate) enum Field<'a> {
    /// Words, which stay in the message that they are of.
    Text(Cow<'a, str>),
    Number(i64),
    /// Anything else.
    Value(Value),
}

/// A file that goes along.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) bytes: FileBytes,
    pub(crate) name: String,
    pub(crate) mime: Option<String>,
}

#[derive(Debug)]
pub(crate) enum FileBytes {
    Memory(Arc<[u8]>),
    Path(PathBuf),
}

impl<'a> Request<'a> {
    pub(crate) fn new(method: &'static str) -> Self {
        Self { method, fields: Fields::default(), files: Vec::new() }
    }

    pub(crate) const fn method(&self) -> &'static str {
        self.method
    }

    pub(crate) const fn has_files(&self) -> bool {
        !self.files.is_empty()
    }

    pub(crate) const fn fields(&self) -> &Fields<'a> {
        &self.fields
    }

    pub(crate) fn set(&mut self, field: &'static str, value: impl Into<Field<'a>>) {
        let fields = &mut self.fields.0;
        let value = value.into();
        match fields.iter_mut().find(|(name, _)| *name == field) {
            Some((_, known)) => *known = value,
            None => fields.push((field, value)),
        }
    }

    /// Takes a file along; what is returned stands for it in the fields.
    pub(crate) fn attach(&mut self, file: File) -> String {
        let name = format!("attach://file{}", self.files.len());
        self.files.push(file);
        name
    }

    /// The request as a form. It can be made again, as after a wait.
    pub(crate) async fn form(&self) -> Result<Form, Failure> {
        let mut form = Form::new();
        for (name, value) in &self.fields.0 {
            form = form.text(*name, value.in_form());
        }
        for (number, file) in self.files.iter().enumerate() {
            form = form.part(format!("file{number}"), file.part().await?);
        }
        Ok(form)
    }
}

impl Field<'_> {
    /// As a form has it: words without quotes, and all else as JSON.
    fn in_form(&self) -> String {
        match self {
            Self::Text(text) => text.clone().into_owned(),
            Self::Number(number) => number.to_string(),
            Self::Value(value) => value.to_string(),
        }
    }
}

impl Serialize for Field<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Number(number) => serializer.serialize_i64(*number),
            Self::Value(value) => value.serialize(serializer),
        }
    }
}

impl<'a> From<&'a str> for Field<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Field<'_> {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl From<i64> for Field<'_> {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<Value> for Field<'_> {
    fn from(value: Value) -> Self {
        Self::Value(value)
    }
}

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl File {
    async fn part(&self) -> Result<Part, Failure> {
        let part = match &self.bytes {
            FileBytes::Memory(bytes) => {
                let length = bytes.len() as u64;
                let shared = Bytes::from_owner(Arc::clone(bytes));
                Part::stream_with_length(reqwest::Body::from(shared), length)
            }
            FileBytes::Path(path) => {
                let shown = path.display().to_string();
                let unread = |error| Failure::NotSent(format!("{shown} cannot be read: {error}"));
                let file = tokio::fs::File::open(path).await.map_err(unread)?;
                let length = file.metadata().await.map_err(unread)?.len();
                Part::stream_with_length(reqwest::Body::from(file), length)
            }
        };
        let part = part.file_name(self.name.clone());
        match &self.mime {
            None => Ok(part),
            Some(mime) => part
                .mime_str(mime)
                .map_err(|_| Failure::NotSent(format!("{mime:?} is no media type"))),
        }
    }
}
