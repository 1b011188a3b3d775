-- Takes a message in: whether it was admitted, whether it is known, its position, and how many
-- records of the chat were pending before. Those who admit to one chat do it one after the other,
-- for positions are to grow in the order in which they become visible. Each statement sees what
-- was committed before it began, so those after the lock see what others did under it.
CREATE FUNCTION {p}inbox_admit(
    IN of_chat BYTEA, IN of_message BYTEA, IN content BYTEA, IN lease BIGINT, IN most BIGINT,
    IN kind BIGINT, IN of_provider BYTEA,
    OUT admitted BIGINT, OUT known BIGINT, OUT place BIGINT, OUT waiting BIGINT
) LANGUAGE plpgsql AS $$
DECLARE
    moment BIGINT := {now};
    is_ended_claim BOOLEAN;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'the inbox needs the isolation level READ COMMITTED: set default_transaction_isolation';
    END IF;
    admitted := 0;
    known := 0;
    place := 0;
    waiting := 0;
    PERFORM pg_advisory_xact_lock(hashtextextended(encode(of_chat, 'base64'), hashtext('{p}inbox')));
    IF of_message IS NOT NULL THEN
        SELECT t.state = 0 AND t.ends_at <= moment INTO is_ended_claim
        FROM {p}inbox AS t WHERE t.chat = of_chat AND t.message = of_message;
        IF FOUND THEN
            known := 1;
            IF NOT is_ended_claim THEN
                RETURN;
            END IF;
            -- It may have been committed meanwhile.
            UPDATE {p}inbox AS t SET message = NULL, state = 2, ends_at = -3000000000000000000
            WHERE t.chat = of_chat AND t.message = of_message AND t.state = 0
                AND t.ends_at <= moment;
            IF NOT FOUND THEN
                RETURN;
            END IF;
            known := 0;
        END IF;
    END IF;
    SELECT count(*) INTO waiting FROM {p}inbox AS t WHERE t.chat = of_chat AND t.state = 1;
    IF waiting >= most THEN
        RETURN;
    END IF;
    INSERT INTO {p}inbox AS t
        (chat, position, provider, message, state, attempts, body, due_at, ends_at)
    SELECT of_chat,
        greatest(moment, 1 + m.value,
            1 + (SELECT max(t.position) FROM {p}inbox AS t WHERE t.chat = of_chat)),
        of_provider, of_message, kind, 0, content, moment, moment + lease
    FROM {p}meta AS m WHERE m.name = 'floor'
    RETURNING t.position INTO place;
    admitted := 1;
END $$
