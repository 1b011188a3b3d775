//! What about the servers endangers what was admitted.

use botmesh_core::store::StoreError;

use crate::RedisStore;
use crate::server::ServerInfo;

impl RedisStore {
    pub(super) async fn find_dangers(&self) -> Result<Vec<String>, StoreError> {
        let mut dangers = Vec::new();
        let servers = self.information().await?;
        let servers: Vec<ServerInfo> = servers.iter().map(|text| ServerInfo::read(text)).collect();
        let appends = servers.iter().all(|server| server.appends);
        match self.configurations(&["save", "appendfsync"]).await? {
            None => dangers.push(format!(
                "the user may not ask the server for its settings, so {} could not be looked at: \
                 see to it yourself, or grant the user config|get",
                if appends { "appendfsync" } else { "save" }
            )),
            Some(settings) => {
                let is = |name: &str, value: &str| {
                    settings.iter().any(|of| of.get(name).is_some_and(|set| set == value))
                };
                if !appends && is("save", "") {
                    dangers.push(
                        "the server keeps nothing on disk (appendonly no, no save): whatever was \
                         accepted is gone when it stops: set appendonly to yes"
                            .to_owned(),
                    );
                }
                if appends && is("appendfsync", "no") {
                    dangers.push(
                        "the server leaves it to its system when to write to the disk \
                         (appendfsync no): a power failure may lose half a minute of what was \
                         accepted: set appendfsync to everysec or always"
                            .to_owned(),
                    );
                }
                if !appends && !is("save", "") {
                    dangers.push(
                        "the server keeps snapshots only (appendonly no): whatever was accepted \
                         since the last one is gone when it stops: set appendonly to yes"
                            .to_owned(),
                    );
                }
            }
        }
        dangers.extend(servers.iter().find_map(ServerInfo::evicts));
        Ok(dangers)
    }
}
