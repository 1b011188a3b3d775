-- KEYS: leases, and of each chat what is pending. ARGV: lease, and each chat.
-- Lets the leases that have ended begin anew. Answers for each chat whether there was one.
local ends, leased = text(now + ARGV[1]), {}
for at = 2, #KEYS do
  leased[at - 1] = 0
  for _, position in ipairs(redis.call('ZRANGE', KEYS[at], 0, -1)) do
    local member = place(position, ARGV[at])
    local ended = redis.call('ZSCORE', KEYS[1], member)
    if ended and tonumber(ended) <= now then
      redis.call('ZADD', KEYS[1], ends, member)
      leased[at - 1] = 1
    end
  end
end
return leased
