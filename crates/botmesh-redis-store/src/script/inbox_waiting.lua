-- KEYS: leases. ARGV: limit.
-- Answers chats and the moments at which their leases ended, by turns, the longest ended first.
-- It looks at a bounded part: the leases of what it answers begin anew, so the next look goes on.
local found, known, seen, limit = {}, {}, 0, tonumber(ARGV[1])
while #found < 2 * limit and seen < 8192 do
  local page = redis.call('ZRANGE', KEYS[1], '-inf', stamp, 'BYSCORE', 'LIMIT', seen, 256, 'WITHSCORES')
  if #page == 0 then
    break
  end
  for at = 1, #page, 2 do
    local chat = string.match(page[at], '^%d+|(.*)$')
    if not known[chat] and #found < 2 * limit then
      known[chat] = true
      found[#found + 1] = chat
      found[#found + 1] = page[at + 1]
    end
  end
  seen = seen + #page / 2
end
return found
