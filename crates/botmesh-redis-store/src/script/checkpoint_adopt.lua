-- ARGV: chat, fence, memory of fences. Answers the fence from before or false, and of a live row
-- its revision, its fence, the time until its waking or false, and its body.
local raised = ARGV[2]
if fence and fence > raised then
  raised = fence
end
if not live then
  remember(raised, request, ARGV[3])
  return { fence }
end
redis.call('HSET', KEYS[1], 'f', raised)
local left = wake and text(math.max(0, wake - now))
return { fence, revision, raised, left, redis.call('HGET', KEYS[1], 'b') }
