-- What all keys share: the floor of fences, the end of grace, the run of the server that wrote it,
-- since when that is known, and when a heartbeat last showed that the clock was set forward. Not logged, like the other tables: a server that crashed finds them empty, and so begins
-- with grace, as does a standby that takes over.
CREATE UNLOGGED TABLE {p}coordination_space (
    name BYTEA NOT NULL PRIMARY KEY,
    floor BIGINT NOT NULL,
    grace_until BIGINT NOT NULL,
    run BIGINT NOT NULL,
    since BIGINT NOT NULL,
    jumped BIGINT NOT NULL
) WITH (fillfactor = 50);

CREATE UNLOGGED TABLE {p}coordination_sessions (
    name BYTEA NOT NULL PRIMARY KEY,
    expires_at BIGINT NOT NULL,
    lease BIGINT NOT NULL,
    registered_at BIGINT NOT NULL,
    epoch BIGINT NOT NULL,
    -- Where its wake-ups go; none when it polls.
    channel TEXT
) WITH (fillfactor = 50);

-- One row for each key, its queue included: whose ticket waits, and which, the next one first. No
-- queue is null, so that the usual case is one comparison.
CREATE UNLOGGED TABLE {p}coordination_turns (
    name BYTEA NOT NULL PRIMARY KEY,
    holder BYTEA,
    ticket BIGINT,
    fence BIGINT NOT NULL,
    previous BYTEA,
    previous_fence BIGINT,
    waiting BYTEA[],
    tickets BIGINT[],
    expires_at BIGINT NOT NULL,
    -- When it was last used, in units so long that the index on it hardly ever changes.
    used BIGINT NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

CREATE INDEX {index}coordination_turns_used ON {p}coordination_turns (used);

-- The clock that decides, in microseconds. It does not stand still during a transaction.
CREATE FUNCTION {p}coordination_clock() RETURNS BIGINT LANGUAGE sql VOLATILE AS
    $$ SELECT CAST(date_part('epoch', clock_timestamp()) * 1000000 AS BIGINT) $$;

-- Names the run of the server.
CREATE FUNCTION {p}coordination_run() RETURNS BIGINT LANGUAGE sql STABLE AS
    $$ SELECT CAST(date_part('epoch', pg_postmaster_start_time()) * 1000000 AS BIGINT) $$
