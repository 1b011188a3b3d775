-- Judges whether a session is dead in the eyes of the caller, and buries it then: `remaining` is
-- null. Otherwise it lives for that long at least. The caller holds the rows of turns here, so it
-- waits for nobody: whoever has locked the session buries or renews it, and may want such a row.
CREATE OR REPLACE FUNCTION {p}coordination_judge(
    caller BYTEA, other BYTEA, moment BIGINT, OUT remaining BIGINT, OUT lease_of BIGINT
) LANGUAGE plpgsql AS $$
DECLARE
    judged RECORD;
    own RECORD;
BEGIN
    SELECT expires_at, lease INTO judged FROM {p}coordination_sessions WHERE name = other;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    lease_of := judged.lease;
    -- Written before the clock was set back: no renewal can reach so far.
    IF judged.expires_at - moment > lease_of * 2 THEN
        judged.expires_at := moment + lease_of;
        UPDATE {p}coordination_sessions SET expires_at = judged.expires_at WHERE name = ANY (ARRAY(
            SELECT name FROM {p}coordination_sessions WHERE name = other FOR UPDATE SKIP LOCKED));
    END IF;
    IF judged.expires_at > moment THEN
        remaining := judged.expires_at - moment;
        RETURN;
    END IF;
    -- Why the caller may not take it for dead, as the time after which it may; zero when it only
    -- has to renew its own session before.
    SELECT expires_at - lease AS confirmed,
        greatest(registered_at, (SELECT jumped FROM {p}coordination_space)) + lease_of AS steady
    INTO own FROM {p}coordination_sessions WHERE name = caller;
    IF NOT FOUND THEN
        remaining := lease_of;
    ELSIF own.steady > moment THEN
        remaining := own.steady - moment;
    ELSIF own.confirmed NOT BETWEEN greatest(judged.expires_at, own.steady) AND moment THEN
        remaining := 0;
    ELSE
        DELETE FROM {p}coordination_sessions WHERE name = ANY (ARRAY(
            SELECT name FROM {p}coordination_sessions
            WHERE name = other AND expires_at <= moment FOR UPDATE SKIP LOCKED));
        IF NOT FOUND THEN
            -- It was renewed meanwhile, or somebody else has buried it, or is about to do one of
            -- the two: then it is asked for again soon.
            SELECT greatest(expires_at - moment, 0) INTO remaining FROM {p}coordination_sessions
            WHERE name = other;
        END IF;
    END IF;
END $$
