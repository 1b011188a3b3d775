-- ARGV: 4 lease. Answers 1 registered, with the shortest and the longest lease of all sessions that
-- live, or 2 duplicate.
if own then
  return { 2 }
end
write_session(ARGV[3], now + ARGV[4], ARGV[4], now, 0)
raise_floor()
-- The server before may have known others with such a lease, which are cut off.
extend_grace(tonumber(ARGV[4]))
local shortest, longest = leases_after(now)
keep_sessions()
return { 1, text(shortest), text(longest) }
