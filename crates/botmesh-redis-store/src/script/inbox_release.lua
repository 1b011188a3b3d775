-- KEYS: records, leases, claims. ARGV: chat, position.
local chat, position = ARGV[1], ARGV[2]
local state, identity = unpack(redis.call('HMGET', KEYS[1], position, position .. 'i'))
if state == 'k' then
  redis.call('ZREM', KEYS[3], place(position, chat))
  drop(KEYS[1], position, identity)
elseif state == 'p' then
  redis.call('ZADD', KEYS[2], stamp, place(position, chat))
end
return 1
