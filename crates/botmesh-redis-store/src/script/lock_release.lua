-- KEYS: lock. ARGV: token, memory of fences, request. Answers 1, or 0 when it was not held.
local token, ends, request = unpack(redis.call('HMGET', KEYS[1], 't', 'u', 'q'))
if request == ARGV[3] then
  return 1
end
if token ~= ARGV[1] or tonumber(ends) <= now then
  return 0
end
redis.call('HSET', KEYS[1], 'u', '0', 'q', ARGV[3])
redis.call('PEXPIRE', KEYS[1], milliseconds(ARGV[2]))
return 1
