//! What a client without any logic reaches by the same driver, with the same guarantees.

use std::time::{Duration, Instant};

use anyhow::Result;
use botmesh_core::id::ChatKey;
use mongodb::bson::{Document, doc};
use mongodb::options::{ClientOptions, WriteConcern};
use mongodb::{Client, Collection};

use super::{CONNECTIONS, DATABASE};
use crate::coordination::statements::AT_ONCE;
use crate::coordination::workers::{BareClient, Worker};

/// The server, and what is asked of it beside messages.
pub(crate) struct Server(Client);

impl Server {
    pub(crate) async fn open(url: &str) -> Result<Self> {
        let mut options = ClientOptions::parse(url).await?;
        let mut majority = WriteConcern::majority();
        majority.journal = Some(true);
        options.write_concern = Some(majority);
        options.retry_writes = Some(false);
        options.max_pool_size = Some(u32::try_from(CONNECTIONS)?);
        let client = Client::with_options(options)?;
        client.database(DATABASE).drop().await?;
        Ok(Self(client))
    }

    /// Whether it is the one that tests use in place of MongoDB.
    pub(crate) async fn is_stand_in(&self) -> Result<bool> {
        let hello = self.0.database("admin").run_command(doc! { "hello": 1 }).await?;
        Ok(hello.get_str("setName").is_ok_and(|name| name == "secantus"))
    }

    /// How many connections there are to it.
    pub(super) async fn connections(&self) -> Result<i64> {
        let status = self.0.database("admin").run_command(doc! { "serverStatus": 1 }).await?;
        Ok(status.get_document("connections")?.get_i32("current")?.into())
    }

    /// A client that takes and frees rows.
    pub(super) fn bare(&self) -> BareClient<Rows> {
        BareClient::new((0..AT_ONCE).map(|_| self.rows()).collect())
    }

    fn rows(&self) -> Rows {
        Rows(self.0.database(DATABASE).collection("bare"))
    }

    /// How long one operation takes.
    pub(super) async fn one(&self, chat: &ChatKey) -> Result<Duration> {
        let begun = Instant::now();
        self.rows().take(chat).await?;
        Ok(begun.elapsed())
    }

    pub(crate) async fn drop_everything(&self) -> Result<()> {
        Ok(self.0.database(DATABASE).drop().await?)
    }
}

/// Runs two operations for each message: the least that a coordinator has to write.
pub(super) struct Rows(Collection<Document>);

impl Rows {
    async fn take(&self, chat: &ChatKey) -> Result<()> {
        let taken = doc! {
            "$set": { "holder": "replica#0123456789abcdef01234567" },
            "$inc": { "fence": 1_i64 },
        };
        self.0.find_one_and_update(doc! { "_id": chat.as_str() }, taken).upsert(true).await?;
        Ok(())
    }
}

impl Worker for Rows {
    async fn handle(&mut self, chat: &ChatKey) -> Result<()> {
        self.take(chat).await?;
        let free = doc! { "$unset": { "holder": "" } };
        self.0.find_one_and_update(doc! { "_id": chat.as_str() }, free).await?;
        Ok(())
    }
}
