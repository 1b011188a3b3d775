-- What the checkpoint scripts share. KEYS: row, index of wakes. ARGV[1]: chat.
--
-- A row is a hash: r revision, f fence (20 digits, so that texts compare as numbers do), e when it
-- expires, w when to wake, q the request that wrote it, b body, l set while it is no mere memory
-- of a fence. Its key lives on after its end, for as long as the fence is remembered.
local revision, fence, ends, wake, request, live =
  unpack(redis.call('HMGET', KEYS[1], 'r', 'f', 'e', 'w', 'q', 'l'))
if ends and tonumber(ends) <= now then
  live = false
end

local function forget_wake()
  if wake then
    redis.call('ZREM', KEYS[2], (ends or '') .. '|' .. ARGV[1])
  end
end

-- Puts the memory of a fence in the place of whatever is known of the chat.
local function remember(number, mark, memory)
  forget_wake()
  redis.call('DEL', KEYS[1])
  redis.call('HSET', KEYS[1], 'f', number)
  if revision then
    redis.call('HSET', KEYS[1], 'r', revision)
  end
  if mark then
    redis.call('HSET', KEYS[1], 'q', mark)
  end
  redis.call('PEXPIRE', KEYS[1], milliseconds(memory))
end
