-- Reserves and releases many keys, of which nobody waits for any, by the rules of coordination_ask
-- and coordination_release. Answers for each key that was found so; the others are left as they
-- are. A key that is to be released and is not there becomes an empty row, which is the same.
WITH own AS MATERIALIZED (
    SELECT moment, floor
    FROM (SELECT {p}coordination_clock() AS moment) AS now, {p}coordination_space,
        {p}coordination_sessions AS s
    WHERE s.name = {1} AND s.expires_at > moment AND s.epoch <= {2} AND grace_until <= moment
        AND run = {p}coordination_run()
)
INSERT INTO {p}coordination_turns AS t (name, holder, ticket, fence, expires_at, used)
SELECT asked.name, CASE takes WHEN 1 THEN {1} END, asked.ticket,
    CASE takes WHEN 1 THEN greatest(moment, floor + 1) ELSE 0 END,
    CASE takes WHEN 1 THEN moment + {6} ELSE 0 END, moment / 600000000
FROM own, unnest({3}, {4}, {5}) AS asked (name, ticket, takes)
ON CONFLICT (name) DO UPDATE SET
    holder = excluded.holder, ticket = excluded.ticket,
    fence = CASE WHEN excluded.holder IS NULL THEN t.fence
        ELSE greatest(t.fence + 1, excluded.fence) END,
    previous = CASE WHEN excluded.holder IS NULL THEN t.holder
        WHEN t.expires_at > (SELECT moment FROM own) THEN t.previous END,
    previous_fence = CASE WHEN excluded.holder IS NULL THEN t.fence
        WHEN t.expires_at > (SELECT moment FROM own) THEN t.previous_fence END,
    waiting = NULL, tickets = NULL,
    expires_at = CASE WHEN excluded.holder IS NULL THEN (SELECT moment FROM own) + {7}
        ELSE excluded.expires_at END,
    used = excluded.used
WHERE CASE WHEN excluded.holder IS NULL
    THEN t.holder = {1} AND t.ticket = excluded.ticket AND t.tickets IS NULL
        AND t.expires_at > (SELECT moment FROM own)
    ELSE t.holder IS NULL AND t.tickets IS NULL OR t.expires_at <= (SELECT moment FROM own) END
RETURNING t.ticket, t.fence, t.previous_fence, t.previous
