-- KEYS[1]: records. ARGV: chat, position, fence, request.
-- Whether the record is pending and the fence may act on it, and whether this very request has
-- acted on it before.
local chat, position = ARGV[1], ARGV[2]
local state, begun, mark = unpack(redis.call('HMGET', KEYS[1], position, position .. 'f', position .. 'q'))
local is_open = state == 'p' and not (begun and begun > ARGV[3])
local is_repeated = state and mark == ARGV[4]
