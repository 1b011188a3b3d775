-- KEYS: lock. ARGV: token, time to hold, memory of fences. Answers the fence, or false when it is held.
-- A lock is a hash: t token, f fence, u until when, q the request that released it last.
local token, fence, ends = unpack(redis.call('HMGET', KEYS[1], 't', 'f', 'u'))
if ends and tonumber(ends) > now then
  return token == ARGV[1] and fence
end
fence = next_number(fence)
redis.call('HSET', KEYS[1], 't', ARGV[1], 'f', fence, 'u', text(now + ARGV[2]))
redis.call('PEXPIRE', KEYS[1], milliseconds(ARGV[2] + ARGV[3]))
return fence
