-- KEYS: claims, dead, buried, and the records of each place. ARGV: how long dead letters are kept,
-- and of each place the position and the chat. Answers how many were forgotten.
local forgotten = 0
for at = 4, #KEYS do
  local position, chat = ARGV[2 * at - 6], ARGV[2 * at - 5]
  local member = place(position, chat)
  local state, since, identity =
    unpack(redis.call('HMGET', KEYS[at], position, position .. 't', position .. 'i'))
  if state == 'k' then
    local ends = redis.call('ZSCORE', KEYS[1], member)
    state = ends and tonumber(ends) <= now and 'k'
  elseif state == 'd' then
    state = since + ARGV[1] <= now and 'd'
  else
    state = false
  end
  if state then
    redis.call('ZREM', KEYS[1], member)
    redis.call('ZREM', KEYS[2], letter(chat, position))
    redis.call('ZREM', KEYS[3], member)
    drop(KEYS[at], position, identity)
    forgotten = forgotten + 1
  end
end
return forgotten
