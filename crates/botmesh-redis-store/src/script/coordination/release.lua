-- ARGV: 9 how many milliseconds a free record lasts. Answers 14 released, with the grant to a
-- ticket of the same incarnation if that was next, 15 cancelled or 16 not the holder.
if holder ~= ARGV[4] then
  if kept ~= '0' and redis.call('LREM', KEYS[3], 0, ARGV[4]) > 0 then
    return { 15 }
  end
  return { 16 }
end
vacate()
if grace_until > now then
  -- Whoever waits polls when grace is over.
  keep(ARGV[9])
  return { 14 }
end
local following = next_ticket()
if not following then
  keep(ARGV[9])
  return { 14 }
end
grant(following)
keep(ARGV[5])
local sequence, incarnation = string.match(following, '^(%d+)/(.*)$')
if incarnation == ARGV[3] then
  return { 14, sequence, fence, previous_fence, previous }
end
wake(following)
return { 14 }
