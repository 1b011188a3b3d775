-- KEYS: row and index of wakes of the checkpoint, records, pending, leases, claims, done, last commit.
-- ARGV: chat, fence, what the change of the checkpoint needs, memory, request, position.
-- Answers the revision of a checkpoint that was set, '' without one, or false when a condition does
-- not hold.
local chat, own, position = ARGV[1], ARGV[2], ARGV[#ARGV]
local memory, mark = ARGV[#ARGV - 2], ARGV[#ARGV - 1] .. '|'
local last = redis.call('GET', KEYS[8])
if last and string.sub(last, 1, #mark) == mark then
  return string.sub(last, #mark + 1)
end
local state, begun, identity = unpack(redis.call('HMGET', KEYS[3], position, position .. 'f', position .. 'i'))
if (state ~= 'p' and state ~= 'k') or (begun and begun > own) then
  return false
end
local changed = change_checkpoint()
if not changed then
  return false
end
drop(KEYS[3], position, identity)
if state == 'p' then
  redis.call('ZREM', KEYS[4], position)
  redis.call('ZREM', KEYS[5], place(position, chat))
else
  redis.call('ZREM', KEYS[6], place(position, chat))
end
redis.call('ZADD', KEYS[7], stamp, name(chat, identity))
redis.call('SET', KEYS[8], mark .. changed, 'PX', milliseconds(memory))
return changed
