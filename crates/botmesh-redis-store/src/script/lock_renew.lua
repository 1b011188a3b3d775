-- KEYS: lock. ARGV: token, time to hold, memory of fences. Answers 1, or 0 when it is not held.
local token, ends = unpack(redis.call('HMGET', KEYS[1], 't', 'u'))
if token ~= ARGV[1] or tonumber(ends) <= now then
  return 0
end
redis.call('HSET', KEYS[1], 'u', text(now + ARGV[2]))
redis.call('PEXPIRE', KEYS[1], milliseconds(ARGV[2] + ARGV[3]))
return 1
