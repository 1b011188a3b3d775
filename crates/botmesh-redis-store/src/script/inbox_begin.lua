-- KEYS: records, pending, leases. ARGV: chat, fence, lease, request.
-- Answers false when nothing is pending; 'f' and a fence that is higher; 'd' and the time until the
-- first is due; or of the record its position, how many more are pending, how often it was begun,
-- its sends or false, its error or false, and its body.
local first = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
if not first then
  return false
end
local begun, mark, due, attempts, sends, error = unpack(redis.call('HMGET', KEYS[1], first .. 'f',
  first .. 'q', first .. 'd', first .. 'n', first .. 's', first .. 'e'))
if mark ~= ARGV[4] then
  if begun and begun > ARGV[2] then
    return { 'f', begun }
  end
  if due and tonumber(due) > now then
    return { 'd', text(due - now) }
  end
  attempts = text(math.min((tonumber(attempts) or 0) + 1, 4294967295))
  redis.call('HSET', KEYS[1], first .. 'f', ARGV[2], first .. 'n', attempts, first .. 'q', ARGV[4])
  redis.call('ZADD', KEYS[3], text(now + ARGV[3]), place(first, ARGV[1]))
end
local body = redis.call('HGET', KEYS[1], first .. 'b')
return { first, redis.call('ZCARD', KEYS[2]) - 1, attempts, sends, error, body }
