-- KEYS: records, pending, leases, dead, buried. ARGV: chat, position, fence, request, error.
-- Answers 1, or 0 when it is not open.
if is_repeated then
  return 1
end
if not is_open then
  return 0
end
redis.call('HSET', KEYS[1], position, 'd', position .. 'e', ARGV[5], position .. 't', stamp,
  position .. 'q', ARGV[4])
redis.call('ZREM', KEYS[2], position)
redis.call('ZREM', KEYS[3], place(position, chat))
redis.call('ZADD', KEYS[4], 0, letter(chat, position))
redis.call('ZADD', KEYS[5], stamp, place(position, chat))
return 1
