-- KEYS: row. Answers revision, fence, the time until its waking or false, and body; or false.
local revision, fence, ends, wake, live = unpack(redis.call('HMGET', KEYS[1], 'r', 'f', 'e', 'w', 'l'))
if not live or (ends and tonumber(ends) <= now) then
  return false
end
local left = wake and text(math.max(0, wake - now))
return { revision, fence, left, redis.call('HGET', KEYS[1], 'b') }
