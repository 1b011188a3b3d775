-- Ends a record and, unless that is refused, the turn of its chat. `written` is as of inbox_commit.
CREATE FUNCTION {p}coordination_depart(
    IN of_chat BYTEA, IN place BIGINT, IN told BIGINT, IN change BIGINT, IN content BYTEA,
    IN wakes BIGINT, IN lasts BIGINT, IN expected BIGINT,
    IN asked BYTEA, IN caller BYTEA, IN ticket_asked BIGINT,
    IN idle BIGINT, IN held BIGINT, IN grace BIGINT,
    OUT written BIGINT,
    OUT code BIGINT, OUT first BIGINT, OUT second BIGINT, OUT third BIGINT, OUT before BYTEA
) LANGUAGE plpgsql AS $$
BEGIN
    written := {p}inbox_commit(of_chat, place, told, change, content, wakes, lasts, expected);
    IF written IS NOT NULL THEN
        SELECT r.code, r.first, r.second, r.third, r.before INTO code, first, second, third, before
        FROM {p}coordination_release(asked, caller, ticket_asked, idle, held, grace) AS r;
    END IF;
END $$;

-- Several messages in one statement, one after the other in the order of their chats, as for
-- inbox_admit_several and inbox_commit_several. That is the order of the keys of their turns, too.
CREATE FUNCTION {p}coordination_arrive_several(
    chats BYTEA[], messages BYTEA[], bodies BYTEA[], leases BIGINT[], mosts BIGINT[],
    kinds BIGINT[], providers BYTEA[],
    names BYTEA[], callers BYTEA[], tickets BIGINT[], epochs BIGINT[],
    queues BIGINT[], holds BIGINT[], graces BIGINT[]
) RETURNS TABLE (admitted BIGINT, known BIGINT, place BIGINT, waiting BIGINT, begun BIGINT,
    code BIGINT, first BIGINT, second BIGINT, third BIGINT, before BYTEA)
LANGUAGE plpgsql SET lock_timeout = '200ms' AS $$
BEGIN
    RETURN QUERY SELECT a.admitted, a.known, a.place, a.waiting, r.begun,
        r.code, r.first, r.second, r.third, r.before
    FROM unnest(chats, messages, bodies, leases, mosts, kinds, providers,
            names, callers, tickets, epochs, queues, holds, graces)
        AS asked (chat, message, body, lease, most, kind, provider,
            name, caller, ticket, epoch, queue, held, grace),
    LATERAL {p}inbox_admit(asked.chat, NULLIF(asked.message, ''), asked.body, asked.lease,
        asked.most, asked.kind, asked.provider) AS a,
    LATERAL {p}coordination_arrive(a.admitted, asked.chat, a.place, a.waiting, asked.kind,
        asked.name, asked.caller, asked.ticket, asked.epoch, asked.queue, asked.held,
        asked.grace) AS r;
END $$;

CREATE FUNCTION {p}coordination_depart_several(
    chats BYTEA[], places BIGINT[], fences BIGINT[], changes BIGINT[], contents BYTEA[],
    wakes BIGINT[], lasts BIGINT[], expected BIGINT[],
    names BYTEA[], callers BYTEA[], tickets BIGINT[],
    idles BIGINT[], holds BIGINT[], graces BIGINT[]
) RETURNS TABLE (written BIGINT, code BIGINT, first BIGINT, second BIGINT, third BIGINT,
    before BYTEA)
LANGUAGE plpgsql SET lock_timeout = '200ms' AS $$
BEGIN
    RETURN QUERY SELECT d.written, d.code, d.first, d.second, d.third, d.before
    FROM unnest(chats, places, fences, changes, contents, wakes, lasts, expected,
            names, callers, tickets, idles, holds, graces)
        AS asked (chat, place, fence, change, content, wake, last, expected,
            name, caller, ticket, idle, held, grace),
    LATERAL {p}coordination_depart(asked.chat, asked.place, asked.fence, asked.change,
        asked.content, asked.wake, asked.last, asked.expected,
        asked.name, asked.caller, asked.ticket, asked.idle, asked.held, asked.grace) AS d;
END $$
