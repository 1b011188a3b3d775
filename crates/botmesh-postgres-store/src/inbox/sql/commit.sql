-- Ends a record, and changes its chat's checkpoint with it: `change` is 0 for none, 1 for one that
-- is made, 2 for one that is replaced, 3 for one that is cleared. Answers the revision that was
-- written, or the position of the record where none was; null when it is refused.
CREATE FUNCTION {p}inbox_commit(
    of_chat BYTEA, place BIGINT, told BIGINT, change BIGINT, content BYTEA,
    wakes BIGINT, lasts BIGINT, expected BIGINT
) RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE
    written BIGINT := place;
BEGIN
    IF change <> 0 THEN
        -- Nobody else ends it from here on.
        PERFORM FROM {p}inbox AS t
        WHERE t.chat = of_chat AND t.position = place AND t.state IN (0, 1)
            AND (t.fence IS NULL OR t.fence <= told)
        FOR UPDATE;
        IF NOT FOUND THEN
            RETURN NULL;
        END IF;
        written := NULL;
    END IF;
    IF change = 1 THEN
        INSERT INTO {p}checkpoints AS t (chat, revision, fence, body, wake_at, ends_at)
        VALUES (of_chat, {fresh}, told, content, {now} + wakes, {now} + lasts)
        ON CONFLICT (chat) DO UPDATE SET
            revision = greatest({now}, t.revision + 1), fence = excluded.fence,
            body = excluded.body, wake_at = excluded.wake_at, ends_at = excluded.ends_at
        WHERE NOT {live} AND t.fence <= excluded.fence
        RETURNING t.revision INTO written;
    ELSIF change = 2 THEN
        UPDATE {p}checkpoints AS t SET
            revision = greatest({now}, t.revision + 1), fence = told,
            body = content, wake_at = {now} + wakes, ends_at = {now} + lasts
        WHERE t.chat = of_chat AND t.revision = expected AND t.fence <= told AND {live}
        RETURNING t.revision INTO written;
    ELSIF change = 3 THEN
        UPDATE {p}checkpoints AS t SET
            revision = greatest({now}, t.revision + 1), fence = told,
            body = NULL, wake_at = NULL, ends_at = {now}
        WHERE t.chat = of_chat AND t.revision = expected AND t.fence <= told AND {live}
        RETURNING t.revision INTO written;
    END IF;
    IF written IS NULL THEN
        RETURN NULL;
    END IF;
    UPDATE {p}inbox AS t SET
        ends_at = CASE WHEN t.message IS NULL THEN -3000000000000000000 ELSE {now} END,
        body = NULL, sends = NULL, error = NULL, state = 2
    WHERE t.chat = of_chat AND t.position = place AND t.state IN (0, 1)
        AND (t.fence IS NULL OR t.fence <= told);
    RETURN CASE WHEN FOUND THEN written END;
END $$
