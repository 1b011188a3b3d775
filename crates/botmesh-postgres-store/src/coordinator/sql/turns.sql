-- The operations on keys: a transcription of the transition function in botmesh-core, with its
-- names. Codes of answers: 7 granted, 8 queued, 9 busy, 10 full, 11 superseded, 12 no session,
-- 13 stale, 14 released, 15 cancelled, 16 not the holder, 17 touched.

-- Where a ticket stands in a queue; null when it does not.
CREATE FUNCTION {p}coordination_place(
    waiting BYTEA[], tickets BIGINT[], caller BYTEA, ticket_asked BIGINT
) RETURNS INTEGER LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    place INTEGER := array_position(tickets, ticket_asked);
BEGIN
    WHILE place IS NOT NULL AND waiting[place] <> caller LOOP
        place := array_position(tickets, ticket_asked, place + 1);
    END LOOP;
    RETURN place;
END $$;

-- Tells a waiting ticket that it was granted. That is a hint: without it the ticket polls.
CREATE FUNCTION {p}coordination_wake(turn {p}coordination_turns) RETURNS VOID
LANGUAGE plpgsql AS $$
DECLARE
    heard TEXT;
    payload TEXT;
BEGIN
    SELECT channel INTO heard FROM {p}coordination_sessions WHERE name = turn.holder;
    IF heard IS NULL OR heard = '' THEN
        RETURN;
    END IF;
    payload := concat_ws('|', turn.ticket, turn.fence, coalesce(turn.previous_fence, 0),
        encode(turn.name, 'hex'), coalesce(encode(turn.previous, 'hex'), ''));
    -- The longest that the server takes.
    IF octet_length(payload) < 8000 THEN
        PERFORM pg_notify(heard, payload);
    END IF;
END $$;

-- Takes the next ticket whose session may live, and skips those of the dead. The turn is granted to
-- it, or held by nobody. `lease_of` is its session's.
CREATE FUNCTION {p}coordination_next(
    INOUT turn {p}coordination_turns, IN caller BYTEA, IN moment BIGINT, IN held BIGINT,
    OUT lease_of BIGINT, OUT popped BIGINT
) LANGUAGE plpgsql AS $$
DECLARE
    judged RECORD;
BEGIN
    popped := 0;
    WHILE popped < coalesce(cardinality(turn.tickets), 0) LOOP
        popped := popped + 1;
        SELECT * INTO judged
        FROM {p}coordination_judge(caller, turn.waiting[popped], moment);
        IF judged.remaining IS NOT NULL THEN
            lease_of := judged.lease_of;
            turn.holder := turn.waiting[popped];
            turn.ticket := turn.tickets[popped];
            turn.fence := greatest(turn.fence + 1, moment,
                (SELECT floor + 1 FROM {p}coordination_space));
            turn.expires_at := moment + held;
            EXIT;
        END IF;
    END LOOP;
    IF popped < coalesce(cardinality(turn.tickets), 0) THEN
        turn.waiting := turn.waiting[popped + 1 :];
        turn.tickets := turn.tickets[popped + 1 :];
    ELSE
        turn.waiting := NULL;
        turn.tickets := NULL;
    END IF;
END $$;

-- `how`: 1 to reserve, 2 to attempt, 3 to poll.
CREATE FUNCTION {p}coordination_ask(
    IN how BIGINT, IN asked BYTEA, IN caller BYTEA, IN ticket_asked BIGINT, IN epoch_told BIGINT,
    IN most BIGINT, IN held BIGINT, IN grace BIGINT,
    OUT code BIGINT, OUT first BIGINT, OUT second BIGINT, OUT third BIGINT, OUT before BYTEA
) LANGUAGE plpgsql AS $$
DECLARE
    moment BIGINT := {p}coordination_clock();
    own RECORD;
    turn {p}coordination_turns;
    place INTEGER;
    pause BIGINT;
    held_up BOOLEAN;
    judged RECORD;
    following RECORD;
BEGIN
    SELECT expires_at, epoch, floor, grace_until, run INTO own
    FROM {p}coordination_sessions AS s, {p}coordination_space WHERE s.name = caller;
    IF own.run IS DISTINCT FROM {p}coordination_run() THEN
        PERFORM {p}coordination_observe(moment, grace);
        SELECT expires_at, epoch, floor, grace_until, run INTO own
        FROM {p}coordination_sessions AS s, {p}coordination_space WHERE s.name = caller;
    END IF;
    IF own.expires_at IS NULL OR own.expires_at <= moment THEN
        code := 12;
        RETURN;
    END IF;
    IF how <> 3 AND epoch_told < own.epoch THEN
        code := 13;
        RETURN;
    END IF;
    -- Nearly always the key is free.
    IF how <> 3 AND own.grace_until <= moment THEN
        INSERT INTO {p}coordination_turns AS t (name, holder, ticket, fence, expires_at, used)
        VALUES (asked, caller, ticket_asked, greatest(moment, own.floor + 1), moment + held,
            moment / 600000000)
        ON CONFLICT (name) DO UPDATE SET
            holder = excluded.holder, ticket = excluded.ticket,
            fence = greatest(t.fence + 1, excluded.fence),
            previous = CASE WHEN t.expires_at > moment THEN t.previous END,
            previous_fence = CASE WHEN t.expires_at > moment THEN t.previous_fence END,
            waiting = NULL, tickets = NULL,
            expires_at = excluded.expires_at, used = excluded.used
        WHERE t.holder IS NULL AND t.tickets IS NULL OR t.expires_at <= moment
        RETURNING t.fence, t.previous_fence, t.previous INTO first, second, before;
        IF FOUND THEN
            code := 7;
            RETURN;
        END IF;
    END IF;

    SELECT * INTO turn FROM {p}coordination_turns AS t WHERE t.name = asked FOR UPDATE;
    IF NOT FOUND AND how <> 3 THEN
        INSERT INTO {p}coordination_turns (name, fence, expires_at, used)
        VALUES (asked, 0, 0, moment / 600000000) ON CONFLICT (name) DO NOTHING;
        SELECT * INTO turn FROM {p}coordination_turns AS t WHERE t.name = asked FOR UPDATE;
    END IF;
    -- It may have waited for the row.
    moment := {p}coordination_clock();
    IF turn.expires_at IS NULL OR turn.expires_at <= moment THEN
        turn.holder := NULL;
        turn.previous := NULL;
        turn.previous_fence := NULL;
        turn.waiting := NULL;
        turn.tickets := NULL;
        turn.fence := coalesce(turn.fence, 0);
        turn.name := asked;
    END IF;
    IF turn.holder = caller AND turn.ticket = ticket_asked THEN
        code := 7;
        first := turn.fence;
        second := turn.previous_fence;
        before := turn.previous;
        RETURN;
    END IF;
    SELECT floor, greatest(0, grace_until - moment) AS pause INTO own FROM {p}coordination_space;
    pause := own.pause;
    IF turn.holder IS NULL AND turn.tickets IS NULL THEN
        IF how = 3 THEN
            code := 11;
            RETURN;
        END IF;
        IF how = 2 AND pause > 0 THEN
            code := 9;
            first := pause;
            RETURN;
        END IF;
    END IF;

    -- Makes sure that the ticket waits, unless it only attempts.
    IF how <> 2 THEN
        place := {p}coordination_place(turn.waiting, turn.tickets, caller, ticket_asked);
        IF place IS NULL AND how = 3 THEN
            code := 11;
            RETURN;
        END IF;
        IF place IS NULL THEN
            IF coalesce(cardinality(turn.tickets), 0) >= most THEN
                code := 10;
                first := coalesce(cardinality(turn.tickets), 0);
                RETURN;
            END IF;
            turn.waiting := array_append(turn.waiting, caller);
            turn.tickets := array_append(turn.tickets, ticket_asked);
            place := cardinality(turn.tickets);
        END IF;
    END IF;
    turn.expires_at := moment + held;
    turn.used := moment / 600000000;
    code := CASE how WHEN 2 THEN 9 ELSE 8 END;

    held_up := pause > 0;
    IF NOT held_up AND turn.holder IS NOT NULL THEN
        SELECT * INTO judged FROM {p}coordination_judge(caller, turn.holder, moment);
        IF judged.remaining IS NOT NULL THEN
            pause := judged.remaining;
            held_up := TRUE;
            IF how = 3 THEN
                -- It may have been released to a server that was lost; then it is given back again.
                PERFORM {p}coordination_wake(turn);
            END IF;
        ELSE
            turn.previous := turn.holder;
            turn.previous_fence := turn.fence;
            turn.holder := NULL;
        END IF;
    END IF;
    IF NOT held_up THEN
        SELECT * INTO following FROM {p}coordination_next(turn, caller, moment, held);
        turn := following.turn;
        IF turn.holder IS NULL AND how = 2 THEN
            turn.holder := caller;
            turn.ticket := ticket_asked;
            turn.fence := greatest(turn.fence + 1, moment, own.floor + 1);
        END IF;
        place := place - following.popped;
        IF turn.holder = caller AND turn.ticket = ticket_asked THEN
            code := 7;
        ELSIF turn.holder IS NOT NULL THEN
            pause := following.lease_of;
            PERFORM {p}coordination_wake(turn);
        END IF;
    END IF;
    UPDATE {p}coordination_turns AS t SET
        holder = turn.holder, ticket = turn.ticket, fence = turn.fence, previous = turn.previous,
        previous_fence = turn.previous_fence, waiting = turn.waiting, tickets = turn.tickets,
        expires_at = turn.expires_at, used = turn.used
    WHERE t.name = asked;
    IF code = 7 THEN
        first := turn.fence;
        second := turn.previous_fence;
        before := turn.previous;
    ELSIF code = 9 THEN
        first := pause;
    ELSE
        first := greatest(0, place - 1) + CASE WHEN turn.holder IS NULL THEN 0 ELSE 1 END;
        second := pause;
    END IF;
END $$;

CREATE FUNCTION {p}coordination_release(
    IN asked BYTEA, IN caller BYTEA, IN ticket_asked BIGINT,
    IN idle BIGINT, IN held BIGINT, IN grace BIGINT,
    OUT code BIGINT, OUT first BIGINT, OUT second BIGINT, OUT third BIGINT, OUT before BYTEA
) LANGUAGE plpgsql AS $$
DECLARE
    moment BIGINT := {p}coordination_clock();
    turn {p}coordination_turns;
    place INTEGER;
BEGIN
    -- Nearly always nobody waits.
    UPDATE {p}coordination_turns AS t SET
        holder = NULL, previous = t.holder, previous_fence = t.fence,
        expires_at = moment + idle, used = moment / 600000000
    WHERE t.name = asked AND t.holder = caller AND t.ticket = ticket_asked AND t.tickets IS NULL
        AND t.expires_at > moment
        AND (SELECT run FROM {p}coordination_space) = {p}coordination_run();
    IF FOUND THEN
        code := 14;
        RETURN;
    END IF;
    PERFORM {p}coordination_observe(moment, grace);
    SELECT * INTO turn FROM {p}coordination_turns AS t WHERE t.name = asked FOR UPDATE;
    moment := {p}coordination_clock();
    code := 16;
    IF NOT FOUND OR turn.expires_at <= moment THEN
        RETURN;
    END IF;
    IF turn.holder = caller AND turn.ticket = ticket_asked THEN
        code := 14;
        turn.previous := turn.holder;
        turn.previous_fence := turn.fence;
        turn.holder := NULL;
        turn.expires_at := moment + idle;
        turn.used := moment / 600000000;
        -- While grace lasts nothing is granted: whoever waits polls when it is over.
        IF (SELECT grace_until <= moment FROM {p}coordination_space) THEN
            SELECT (n.turn).* INTO turn
            FROM {p}coordination_next(turn, caller, moment, held) AS n;
            IF turn.holder = caller THEN
                first := turn.ticket;
                second := turn.fence;
                third := turn.previous_fence;
                before := turn.previous;
            ELSIF turn.holder IS NOT NULL THEN
                PERFORM {p}coordination_wake(turn);
            END IF;
        END IF;
    ELSE
        place := {p}coordination_place(turn.waiting, turn.tickets, caller, ticket_asked);
        IF place IS NULL THEN
            RETURN;
        END IF;
        code := 15;
        turn.waiting := turn.waiting[: place - 1] || turn.waiting[place + 1 :];
        turn.tickets := turn.tickets[: place - 1] || turn.tickets[place + 1 :];
        IF cardinality(turn.tickets) = 0 THEN
            turn.waiting := NULL;
            turn.tickets := NULL;
        END IF;
    END IF;
    UPDATE {p}coordination_turns AS t SET
        holder = turn.holder, ticket = turn.ticket, fence = turn.fence, previous = turn.previous,
        previous_fence = turn.previous_fence, waiting = turn.waiting, tickets = turn.tickets,
        expires_at = turn.expires_at, used = turn.used
    WHERE t.name = asked;
END $$;

CREATE FUNCTION {p}coordination_touch(
    asked BYTEA, caller BYTEA, ticket_asked BIGINT, held BIGINT, grace BIGINT
) RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE
    moment BIGINT := {p}coordination_clock();
BEGIN
    PERFORM {p}coordination_observe(moment, grace);
    UPDATE {p}coordination_turns AS t SET expires_at = moment + held, used = moment / 600000000
    WHERE t.name = asked AND t.holder = caller AND t.ticket = ticket_asked
        AND t.expires_at > moment;
    RETURN CASE WHEN FOUND THEN 17 ELSE 16 END;
END $$;

-- Removes keys that nobody remembers any more, a batch at a time; answers how many.
CREATE FUNCTION {p}coordination_sweep(most BIGINT) RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE
    moment BIGINT := {p}coordination_clock();
    removed BIGINT;
BEGIN
    DELETE FROM {p}coordination_turns WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM {p}coordination_turns
        WHERE used < moment / 600000000 AND expires_at <= moment
        LIMIT most FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS removed = ROW_COUNT;
    RETURN removed;
END $$
