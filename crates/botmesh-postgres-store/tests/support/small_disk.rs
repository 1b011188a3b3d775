use std::process::{Command, Stdio};

use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

use super::server::PrivateServer;

/// So much the disk holds: an empty database, and a little.
const SIZE: &str = "24m";

/// A database whose disk is small. Where no file system can be mounted, its tables refuse to grow
/// with the server's own words instead.
pub(crate) struct SmallDisk {
    server: PrivateServer,
    mounted: Option<String>,
}

impl SmallDisk {
    pub(crate) async fn new() -> Option<Self> {
        let server = PrivateServer::start(&[]).await?;
        let place = server.data().with_file_name("small").display().to_string();
        std::fs::create_dir(&place).unwrap();
        let mount =
            format!("mount -t tmpfs -o size={SIZE} tmpfs {place} && chown postgres {place}");
        let mounted = Command::new("sh").args(["-c", &mount]).stderr(Stdio::null()).status();
        let mounted = mounted.is_ok_and(|status| status.success());
        println!("the disk is {}", if mounted { "small" } else { "said to be small" });
        let mut behind = server.connection().await;
        if mounted {
            let space = format!("CREATE TABLESPACE small LOCATION '{place}'");
            behind.execute(sqlx::raw_sql(AssertSqlSafe(space))).await.unwrap();
        }
        let space = if mounted { "small" } else { "pg_default" };
        let make = format!("CREATE DATABASE bots TABLESPACE {space}");
        behind.execute(sqlx::raw_sql(AssertSqlSafe(make))).await.unwrap();
        Some(Self { server, mounted: mounted.then_some(place) })
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/bots", self.server.port)
    }

    /// Fills the disk to its last page.
    pub(crate) async fn fill(&self) {
        let mut behind = PgConnection::connect(&self.url()).await.unwrap();
        if self.mounted.is_none() {
            behind.execute(sqlx::raw_sql(REFUSE)).await.unwrap();
            return;
        }
        let filler = "CREATE UNLOGGED TABLE filler (page TEXT);
            ALTER TABLE filler ALTER page SET STORAGE PLAIN";
        behind.execute(sqlx::raw_sql(filler)).await.unwrap();
        // In ever smaller steps, each of which is undone when it does not fit.
        for rows in [256, 16, 1] {
            let add = format!(
                "INSERT INTO filler SELECT repeat('x', 8000) FROM generate_series(1, {rows})"
            );
            loop {
                match behind.execute(sqlx::raw_sql(AssertSqlSafe(add.clone()))).await {
                    Ok(_) => {}
                    Err(error) => {
                        let code = error.as_database_error().and_then(|error| error.code());
                        assert_eq!(code.as_deref(), Some("53100"), "{error}");
                        break;
                    }
                }
            }
        }
    }

    /// Makes room.
    pub(crate) async fn make_room(&self) {
        let mut behind = PgConnection::connect(&self.url()).await.unwrap();
        let room = match self.mounted {
            Some(_) => "DROP TABLE filler",
            None => "DROP FUNCTION refuse() CASCADE",
        };
        behind.execute(sqlx::raw_sql(room)).await.unwrap();
    }
}

const REFUSE: &str = "
    CREATE FUNCTION refuse() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN
        RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100';
    END $$;
    DO $$ DECLARE name TEXT; BEGIN
        FOR name IN SELECT relname FROM pg_class WHERE relkind = 'r' AND relname LIKE 'botmesh%' LOOP
            EXECUTE format('CREATE TRIGGER refuse BEFORE INSERT ON %I
                FOR EACH ROW EXECUTE FUNCTION refuse()', name);
        END LOOP;
    END $$";

impl Drop for SmallDisk {
    fn drop(&mut self) {
        self.server.kill();
        if let Some(place) = &self.mounted {
            let _ = Command::new("umount").args(["-l", place]).status();
        }
    }
}
