-- Reserves for a message that was admitted, and begins its record when that is granted at once and
-- nothing else of the chat is pending. Of a message that is not new nothing is answered.
CREATE FUNCTION {p}coordination_arrive(
    IN is_new BIGINT, IN of_chat BYTEA, IN place BIGINT, IN waiting BIGINT, IN kind BIGINT,
    IN asked BYTEA, IN caller BYTEA, IN ticket_asked BIGINT, IN epoch_told BIGINT,
    IN most BIGINT, IN held BIGINT, IN grace BIGINT,
    OUT begun BIGINT,
    OUT code BIGINT, OUT first BIGINT, OUT second BIGINT, OUT third BIGINT, OUT before BYTEA
) LANGUAGE plpgsql AS $$
BEGIN
    begun := 0;
    IF is_new = 0 THEN
        RETURN;
    END IF;
    SELECT a.code, a.first, a.second, a.third, a.before INTO code, first, second, third, before
    FROM {p}coordination_ask(1, asked, caller, ticket_asked, epoch_told, most, held, grace) AS a;
    IF code = 7 AND waiting = 0 AND kind = 1 THEN
        UPDATE {p}inbox AS t SET fence = first, attempts = 1
        WHERE t.chat = of_chat AND t.position = place;
        begun := 1;
    END IF;
END $$
