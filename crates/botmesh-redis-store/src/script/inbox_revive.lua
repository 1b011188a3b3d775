-- KEYS: records, pending, leases, dead, buried. ARGV: chat, position, request.
-- Answers 1, or 0 when there is no such dead letter.
local chat, position = ARGV[1], ARGV[2]
local state, mark = unpack(redis.call('HMGET', KEYS[1], position, position .. 'q'))
if state == 'p' and mark == ARGV[3] then
  return 1
end
if state ~= 'd' then
  return 0
end
redis.call('HDEL', KEYS[1], position .. 'd', position .. 't')
redis.call('HSET', KEYS[1], position, 'p', position .. 'n', '0', position .. 'q', ARGV[3])
redis.call('ZREM', KEYS[4], letter(chat, position))
redis.call('ZREM', KEYS[5], place(position, chat))
redis.call('ZADD', KEYS[2], position, position)
redis.call('ZADD', KEYS[3], stamp, place(position, chat))
return 1
