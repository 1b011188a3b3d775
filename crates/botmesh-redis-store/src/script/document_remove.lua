-- KEYS: document. ARGV: expected revision, request, how long the removal is remembered.
-- Answers the revision of the removal, or false when the condition does not hold.
local revision, request, live = unpack(redis.call('HMGET', KEYS[1], 'r', 'q', 'l'))
if revision and not live and request == ARGV[2] then
  return revision
end
if not live or revision ~= ARGV[1] then
  return false
end
revision = next_number(revision)
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'r', revision, 'q', ARGV[2])
redis.call('PEXPIRE', KEYS[1], milliseconds(ARGV[3]))
return revision
