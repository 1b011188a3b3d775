-- The operations on sessions: a transcription of the transition function in botmesh-core, with its
-- names. Codes of answers: 1 registered, 2 duplicate, 3 renewed, 4 jumped, 5 expired, 6 stopped.

-- Notices that the server is another one than before, or that the tables were emptied: whoever was
-- granted something before may believe in it until its lease ends, which may be longer than the
-- caller's. A grace of zero switches that off.
CREATE FUNCTION {p}coordination_observe(moment BIGINT, grace BIGINT) RETURNS VOID
LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM {p}coordination_space WHERE run = {p}coordination_run()) THEN
        RETURN;
    END IF;
    INSERT INTO {p}coordination_space AS s (name, floor, grace_until, run, since, jumped)
    VALUES ('space', moment,
        CASE WHEN grace > 0 THEN moment + greatest(grace,
            (SELECT max(lease) FROM {p}coordination_sessions)) ELSE 0 END,
        {p}coordination_run(), moment, 0)
    ON CONFLICT (name) DO UPDATE SET
        floor = greatest(s.floor, moment),
        grace_until = greatest(s.grace_until, excluded.grace_until),
        run = excluded.run, since = excluded.since
    WHERE s.run <> excluded.run;
END $$;

-- Answers the shortest and the longest lease of all sessions that live.
CREATE FUNCTION {p}coordination_register(
    IN caller BYTEA, IN lease_asked BIGINT, IN channel_asked BYTEA, IN grace BIGINT,
    OUT code BIGINT, OUT first BIGINT, OUT second BIGINT
) LANGUAGE plpgsql AS $$
DECLARE
    moment BIGINT := {p}coordination_clock();
BEGIN
    PERFORM {p}coordination_observe(moment, grace);
    INSERT INTO {p}coordination_sessions
        (name, expires_at, lease, registered_at, epoch, channel)
    VALUES (caller, moment + lease_asked, lease_asked, moment, 0,
        convert_from(channel_asked, 'UTF8'))
    ON CONFLICT (name) DO NOTHING;
    IF NOT FOUND THEN
        code := 2;
        RETURN;
    END IF;
    -- The server before may have known others with such a lease, which are cut off.
    UPDATE {p}coordination_space SET floor = greatest(floor, moment),
        grace_until = CASE WHEN grace > 0 THEN greatest(grace_until, since + lease_asked)
            ELSE grace_until END;
    code := 1;
    SELECT min(lease), max(lease) INTO first, second
    FROM {p}coordination_sessions WHERE expires_at > moment;
END $$;

CREATE FUNCTION {p}coordination_heartbeat(
    caller BYTEA, epoch_told BIGINT, age BIGINT, grace BIGINT
) RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE
    moment BIGINT := {p}coordination_clock();
    own RECORD;
    expired BOOLEAN;
    steady BIGINT;
    answer BIGINT := 3;
BEGIN
    PERFORM {p}coordination_observe(moment, grace);
    -- What lies in the future by a clock that was set back began now.
    UPDATE {p}coordination_space SET
        grace_until = CASE WHEN since > moment THEN moment + greatest(0, grace_until - since)
            ELSE grace_until END,
        since = least(since, moment), jumped = least(jumped, moment)
    WHERE since > moment OR jumped > moment;
    SELECT * INTO own FROM {p}coordination_sessions WHERE name = caller FOR UPDATE;
    IF NOT FOUND THEN
        RETURN 5;
    END IF;
    -- It may have waited for the row.
    moment := {p}coordination_clock();
    expired := own.expires_at <= moment;
    IF expired AND age >= own.lease / 2 THEN
        DELETE FROM {p}coordination_sessions WHERE name = caller;
        RETURN 5;
    END IF;
    -- More time has passed here than for the caller, by more than local deadlines keep in reserve:
    -- this clock was set forward, for all sessions.
    IF expired OR moment - (own.expires_at - own.lease) - age
        > least(greatest(own.lease / 10, 250000), 2000000, own.lease / 2) THEN
        answer := 4;
    END IF;
    UPDATE {p}coordination_sessions SET
        expires_at = moment + own.lease,
        -- A clock that was set back would make it a newcomer for as long.
        registered_at = least(own.registered_at, moment),
        epoch = greatest(own.epoch, epoch_told)
    WHERE name = caller;
    UPDATE {p}coordination_space SET floor = greatest(floor, moment),
        jumped = CASE answer WHEN 4 THEN moment ELSE jumped END
    RETURNING greatest(jumped, least(own.registered_at, moment)) INTO steady;
    -- Removes what expired more than a lease ago. To be absent is to be dead. Not waited for:
    -- whoever holds such a row removes or renews it.
    DELETE FROM {p}coordination_sessions WHERE name = ANY (ARRAY(
        SELECT name FROM {p}coordination_sessions
        WHERE expires_at + lease <= moment AND steady + lease <= moment
        FOR UPDATE SKIP LOCKED));
    RETURN answer;
END $$;

CREATE FUNCTION {p}coordination_stop(caller BYTEA, grace BIGINT) RETURNS BIGINT
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM {p}coordination_observe({p}coordination_clock(), grace);
    DELETE FROM {p}coordination_sessions WHERE name = caller;
    RETURN 6;
END $$;
