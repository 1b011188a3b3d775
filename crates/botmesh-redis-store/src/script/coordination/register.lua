-- ARGV: 4 lease. Answers 1 registered or 2 duplicate.
if own then
  return { 2 }
end
write_session(ARGV[3], now + ARGV[4], ARGV[4], now, 0)
raise_floor()
keep_sessions()
return { 1 }
