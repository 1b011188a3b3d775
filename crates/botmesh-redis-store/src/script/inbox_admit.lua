-- KEYS: records, pending, leases, claims, done, last position.
-- ARGV: chat, identity, request, lease, how many may be pending, state, and the body if there is one.
-- Answers false when the message is known, how many are pending when these are too many, else the
-- position and how many are before it.
local chat, identity, request = ARGV[1], ARGV[2], ARGV[3]
local known = redis.call('HGET', KEYS[1], identity)
if known then
  local state, mark = unpack(redis.call('HMGET', KEYS[1], known, known .. 'q'))
  if mark == request then
    return { known, redis.call('ZCOUNT', KEYS[2], '-inf', '(' .. known) }
  end
  local ends = state == 'k' and redis.call('ZSCORE', KEYS[4], place(known, chat))
  if not ends or tonumber(ends) > now then
    return false
  end
elseif redis.call('ZSCORE', KEYS[5], name(chat, identity)) then
  return false
end
local waiting = redis.call('ZCARD', KEYS[2])
if waiting >= tonumber(ARGV[5]) then
  return { waiting }
end
if known then
  redis.call('ZREM', KEYS[4], place(known, chat))
  drop(KEYS[1], known, identity)
end
local position = next_number(redis.call('GET', KEYS[6]))
redis.call('SET', KEYS[6], position)
local ends = text(now + ARGV[4])
if ARGV[6] == 'k' then
  redis.call('HSET', KEYS[1], identity, position, position, 'k', position .. 'i', identity,
    position .. 'q', request)
  redis.call('ZADD', KEYS[4], ends, place(position, chat))
else
  redis.call('HSET', KEYS[1], identity, position, position, 'p', position .. 'i', identity,
    position .. 'q', request, position .. 'b', ARGV[7])
  redis.call('ZADD', KEYS[2], position, position)
  redis.call('ZADD', KEYS[3], ends, place(position, chat))
end
return { position, waiting }
