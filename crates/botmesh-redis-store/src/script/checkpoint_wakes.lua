-- KEYS: index of wakes. ARGV: horizon, limit. Answers chats and the times until their waking, by
-- turns, the earliest first. What has expired meanwhile leaves the index.
local last, limit = text(now + ARGV[1]), tonumber(ARGV[2])
local found, expired, seen = {}, {}, 0
while #found < 2 * limit and #expired < 4096 do
  local page = redis.call('ZRANGE', KEYS[1], '-inf', last, 'BYSCORE', 'LIMIT', seen, 256, 'WITHSCORES')
  if #page == 0 then
    break
  end
  for at = 1, #page, 2 do
    local ends, chat = string.match(page[at], '^(%d*)|(.*)$')
    if ends ~= '' and tonumber(ends) <= now then
      expired[#expired + 1] = page[at]
    elseif #found < 2 * limit then
      found[#found + 1] = chat
      found[#found + 1] = text(math.max(0, page[at + 1] - now))
    end
  end
  seen = seen + #page / 2
end
for _, member in ipairs(expired) do
  redis.call('ZREM', KEYS[1], member)
end
return found
