-- Several steps in one statement, one after the other, with one answer for each. They come in the
-- order of their chats. Whatever a step locks belongs to its chat, and within a chat everybody locks
-- in one order, too: the advisory lock of who admits, the record, the checkpoint, the turn. Whoever
-- locks rows of several chats otherwise (turns alone, in the order of their keys, which is that of
-- the chats) keeps to it, or waits for none of them. So no two can wait for each other; but two
-- chats share an advisory lock when numbers of 64 bits agree, and then the server undoes one
-- statement. Nobody is kept waiting for long by all that a statement holds: where a lock takes
-- longer than the limit here it is undone, and each step goes by itself.
CREATE FUNCTION {p}inbox_admit_several(
    chats BYTEA[], messages BYTEA[], bodies BYTEA[], leases BIGINT[], mosts BIGINT[],
    kinds BIGINT[], providers BYTEA[]
) RETURNS TABLE (admitted BIGINT, known BIGINT, place BIGINT, waiting BIGINT)
LANGUAGE plpgsql SET lock_timeout = '200ms' AS $$
BEGIN
    RETURN QUERY SELECT a.admitted, a.known, a.place, a.waiting
    FROM unnest(chats, messages, bodies, leases, mosts, kinds, providers)
        AS asked (chat, message, body, lease, most, kind, provider),
    LATERAL {p}inbox_admit(asked.chat, NULLIF(asked.message, ''), asked.body, asked.lease,
        asked.most, asked.kind, asked.provider) AS a;
END $$;

CREATE FUNCTION {p}inbox_commit_several(
    chats BYTEA[], places BIGINT[], fences BIGINT[], changes BIGINT[], contents BYTEA[],
    wakes BIGINT[], lasts BIGINT[], expected BIGINT[]
) RETURNS TABLE (written BIGINT)
LANGUAGE plpgsql SET lock_timeout = '200ms' AS $$
BEGIN
    RETURN QUERY SELECT {p}inbox_commit(asked.chat, asked.place, asked.fence, asked.change,
        asked.content, asked.wake, asked.last, asked.expected)
    FROM unnest(chats, places, fences, changes, contents, wakes, lasts, expected)
        AS asked (chat, place, fence, change, content, wake, last, expected);
END $$;

CREATE FUNCTION {p}inbox_begin_several(chats BYTEA[], fences BIGINT[], leases BIGINT[])
RETURNS TABLE (begun BIGINT, higher BIGINT, due_in BIGINT, place BIGINT, attempts BIGINT,
    body BYTEA, sends BYTEA, error BYTEA, more BIGINT)
LANGUAGE plpgsql SET lock_timeout = '200ms' AS $$
BEGIN
    RETURN QUERY SELECT b.begun, b.higher, b.due_in, b.place, b.attempts, b.body, b.sends,
        b.error, b.more
    FROM unnest(chats, fences, leases) AS asked (chat, fence, lease),
    LATERAL {p}inbox_begin(asked.chat, asked.fence, asked.lease) AS b;
END $$
