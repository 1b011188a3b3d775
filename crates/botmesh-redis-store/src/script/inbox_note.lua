-- KEYS: records. ARGV: chat, position, fence, request, sends. Answers 1, or 0 when it is not open.
if not is_open then
  return 0
end
redis.call('HSET', KEYS[1], position .. 's', ARGV[5])
return 1
