-- KEYS: records, leases. ARGV: chat, position, fence, request, how often it counts as begun, error,
-- time until it is due, and what is noted of its sends if anything is.
-- Answers 1, or 0 when it is not open.
if is_repeated then
  return 1
end
if not is_open then
  return 0
end
local due = text(now + ARGV[7])
redis.call('HSET', KEYS[1], position .. 'n', ARGV[5], position .. 'e', ARGV[6], position .. 'd', due,
  position .. 'q', ARGV[4])
if ARGV[8] then
  redis.call('HSET', KEYS[1], position .. 's', ARGV[8])
end
redis.call('ZADD', KEYS[2], due, place(position, chat))
return 1
