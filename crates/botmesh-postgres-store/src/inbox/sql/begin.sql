-- Begins the first pending record of a chat: whether it was begun, the fence that forbids it, in
-- which time it is due, and the record. Nothing is told when none is pending. The statement does
-- not wait for the disk; what a crash forgets of it is made good by the next attempt.
CREATE FUNCTION {p}inbox_begin(
    IN of_chat BYTEA, IN told BIGINT, IN lease BIGINT,
    OUT begun BIGINT, OUT higher BIGINT, OUT due_in BIGINT, OUT place BIGINT, OUT attempts BIGINT,
    OUT body BYTEA, OUT sends BYTEA, OUT error BYTEA, OUT more BIGINT
) LANGUAGE plpgsql AS $$
DECLARE
    pending RECORD;
    moment BIGINT;
BEGIN
    SELECT t.position, t.fence, t.due_at INTO pending FROM {p}inbox AS t
    WHERE t.chat = of_chat AND t.state = 1 ORDER BY t.position LIMIT 1;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    -- Not that of the statement, which may have begun before the record was there.
    moment := CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT);
    PERFORM set_config('synchronous_commit', 'off', true);
    place := pending.position;
    UPDATE {p}inbox AS t SET fence = told, attempts = t.attempts + 1, ends_at = moment + lease
    WHERE t.chat = of_chat AND t.position = place AND t.state = 1
        AND (t.fence IS NULL OR t.fence <= told) AND t.due_at <= moment
    RETURNING t.attempts, t.body, t.sends, t.error INTO attempts, body, sends, error;
    -- Somebody whose turn is over may have ended or postponed it meanwhile.
    begun := CASE WHEN FOUND THEN 1 ELSE 0 END;
    IF pending.fence > told THEN
        higher := pending.fence;
    END IF;
    due_in := pending.due_at - moment;
    more := CASE WHEN EXISTS (SELECT FROM {p}inbox AS t
        WHERE t.chat = of_chat AND t.state = 1 AND t.position > place) THEN 1 ELSE 0 END;
END $$
