//! Calls of the Bot API over HTTP.
//!
//! The requests are teloxide's types. They are carried by a transport of our own, which bounds what
//! it reads, keeps the error code, waits for nothing that it was not asked to, and never shows an
//! address: each has the token in it.

mod answer;
mod failure;
mod request;

pub(crate) use answer::Answer;
pub(crate) use failure::Failure;
pub(crate) use request::{File, FileBytes, Request};

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use reqwest::{Client, Response, Url};
use serde::Serialize;
use serde_json::value::RawValue;
use teloxide_core::requests::Payload;

use crate::SettingsError;
use crate::token::Token;

/// The longest answer to a call that is not `getUpdates`, in bytes.
const MAX_ANSWER: usize = 4 << 20;

/// How much is kept of an answer that is too long.
const HEAD: usize = 256;

/// How long a call may take that sends no file and waits for nothing.
const CALL_TIME: Duration = Duration::from_secs(30);

/// How long a call may take that sends a file.
const UPLOAD_TIME: Duration = Duration::from_secs(300);

/// One bot at one Bot API server.
pub(crate) struct Api {
    client: Client,
    token: Token,
    /// With a slash at its end.
    base: Url,
}

impl Api {
    pub(crate) fn new(token: Token, base: Url) -> Result<Self, SettingsError> {
        // Somebody may have installed another provider already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .connect_timeout(Duration::from_secs(10))
            .tcp_nodelay(true)
            .user_agent(concat!("botmesh-telegram/", env!("CARGO_PKG_VERSION")))
            // An answer that points elsewhere would take the token along.
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| SettingsError::Client(error.without_url().into()))?;
        Ok(Self { client, token, base })
    }

    pub(crate) const fn token(&self) -> &Token {
        &self.token
    }

    /// Calls a method that sends no file.
    pub(crate) async fn call<P>(&self, payload: &P) -> Result<Box<RawValue>, Failure>
    where
        P: Payload + Serialize + Sync,
    {
        let body = serde_json::to_vec(payload).map_err(Failure::unwritable)?;
        let answer = self.post(P::NAME, body, CALL_TIME, MAX_ANSWER).await?;
        Answer::read(&answer, &self.token)
    }

    /// Calls a method by its name with a JSON body; the answer is as it came, if not longer than
    /// `most`.
    pub(crate) async fn post(
        &self,
        method: &str,
        body: Vec<u8>,
        within: Duration,
        most: usize,
    ) -> Result<Bytes, Failure> {
        let request = self
            .client
            .post(self.method(method)?)
            .header(reqwest::header::CONTENT_TYPE, "application/json")
            .timeout(within)
            .body(body);
        let response = request.send().await.map_err(Failure::network)?;
        read(response, most).await
    }

    /// Makes a request.
    pub(crate) async fn send(&self, request: &Request<'_>) -> Result<Box<RawValue>, Failure> {
        if !request.has_files() {
            let body = serde_json::to_vec(request.fields()).map_err(Failure::unwritable)?;
            let answer = self.post(request.method(), body, CALL_TIME, MAX_ANSWER).await?;
            return Answer::read(&answer, &self.token);
        }
        let method = self.method(request.method())?;
        let form = request.form().await?;
        let request = self.client.post(method).timeout(UPLOAD_TIME).multipart(form);
        let response = request.send().await.map_err(Failure::network)?;
        Answer::read(&read(response, MAX_ANSWER).await?, &self.token)
    }

    /// Opens a file by the path that `getFile` gave.
    pub(crate) async fn open(&self, path: &str) -> Result<Response, Failure> {
        let mut url = self.base.clone();
        {
            let mut segments = url.path_segments_mut().map_err(|()| Failure::no_address())?;
            segments.pop_if_empty().push("file").push(&self.bot_segment());
            segments.extend(path.split('/').filter(|part| !matches!(*part, "" | "." | "..")));
        }
        let response = self.client.get(url).send().await.map_err(Failure::network)?;
        if response.status().is_success() {
            return Ok(response);
        }
        let answer = read(response, MAX_ANSWER).await?;
        match Answer::read(&answer, &self.token) {
            Err(failure) => Err(failure),
            Ok(_) => Err(Failure::unreadable("a file was refused")),
        }
    }

    fn bot_segment(&self) -> String {
        format!("bot{}", self.token.secret().reveal())
    }

    fn method(&self, name: &str) -> Result<Url, Failure> {
        let mut url = self.base.clone();
        url.path_segments_mut()
            .map_err(|()| Failure::no_address())?
            .pop_if_empty()
            .push(&self.bot_segment())
            .push(name);
        Ok(url)
    }
}

/// The body, if it is not longer than `most` bytes.
async fn read(mut response: Response, most: usize) -> Result<Bytes, Failure> {
    let status = response.status();
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(Failure::network)? {
        body.extend_from_slice(&piece);
        if body.len() > most {
            body.truncate(HEAD);
            return Err(Failure::TooLong { most, head: body });
        }
    }
    // A server in between answers with a page of its own; the Bot API always with JSON.
    if status.is_server_error() && !body.trim_ascii_start().starts_with(b"{") {
        return Err(Failure::server(status.as_u16()));
    }
    Ok(body.into())
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api")
            .field("token", &self.token)
            .field("host", &self.base.host_str().unwrap_or_default())
            .finish_non_exhaustive()
    }
}
