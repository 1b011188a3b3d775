-- KEYS: document. ARGV: expected revision or '', body, request.
-- Answers the new revision, or false when the condition does not hold.
local revision, request, live = unpack(redis.call('HMGET', KEYS[1], 'r', 'q', 'l'))
if live and request == ARGV[3] then
  return revision
end
if ((live and revision) or '') ~= ARGV[1] then
  return false
end
revision = next_number(revision)
redis.call('HSET', KEYS[1], 'r', revision, 'q', ARGV[3], 'l', '1', 'b', ARGV[2])
redis.call('PERSIST', KEYS[1])
return revision
