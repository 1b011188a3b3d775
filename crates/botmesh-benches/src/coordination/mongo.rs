//! What the coordinator on MongoDB costs, beside two bare operations at the same server in the same
//! run. The server is the reader's own: what stands in for MongoDB in tests is no measure of it.

mod bare;

use anyhow::{Context as _, Result, ensure};
use botmesh_core::coordination::{Coordinator as _, CoordinatorSettings};

use super::fleet::{Fleet as _, Mongo};
use super::latency::{free_chats, hand_overs, tell};
use super::report::Report;
use super::statements::Contest;
use super::{Options, chat, connections};
pub(crate) use bare::Server;

/// Where the server is.
pub(crate) const URL: &str = "BOTMESH_TEST_MONGO_URL";
/// The database of the bench, which is dropped before and after it.
pub(crate) const DATABASE: &str = "botmesh_bench";
/// Connections of all replicas together, and of the bare client.
const CONNECTIONS: usize = 32;
/// Those of one of two replicas.
const FEW: usize = 4;
const BARE: &str = "two bare operations, same driver";
const ONE: &str = "one bare operation";

pub(super) async fn measure(options: &Options, report: &mut Report<'_>) -> Result<()> {
    let url = std::env::var(URL).with_context(|| {
        format!("set {URL} to the URL of a MongoDB whose {DATABASE} may be dropped")
    })?;
    let server = Server::open(&url).await?;
    ensure!(
        !server.is_stand_in().await?,
        "this is a stand-in for MongoDB: its figures say nothing"
    );
    let (fleet, bare) = (Mongo { url, database: DATABASE }, server.bare());
    let contest = Contest {
        fleet: &fleet,
        connections: CONNECTIONS,
        bare: &bare,
        limit: BARE,
        goal: "",
        server: None,
    };
    contest.measure(options, report).await?;
    if !options.throughput_only {
        let first = fleet.ready(CoordinatorSettings::default(), FEW).await?;
        let second = fleet.ready(CoordinatorSettings::default(), FEW).await?;
        let key = chat(0)?;
        let one = async || server.one(&key).await;
        let [grants, limit] = free_chats(&*first, options.samples, one).await?;
        tell(report, "reserve to grant, free chat", &grants, (ONE, &limit), ["", ""]);
        let [ours, limit] = hand_overs(&*first, &*second, options.samples, one).await?;
        tell(report, "hand-over by change stream", &ours, (ONE, &limit), ["", ""]);
        first.stop().await?;
        second.stop().await?;
        let before = server.connections().await?;
        let open = async || Ok(server.connections().await? - before);
        let limit = ("those of the client, and three", 3);
        connections::measure(&fleet, options.messages, limit, open, report).await?;
    }
    server.drop_everything().await
}
