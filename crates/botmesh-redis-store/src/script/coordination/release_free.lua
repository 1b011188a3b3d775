-- The usual case, before the tools for all others are made: the caller holds the key, nobody waits
-- for it, and the server is the same as before. ARGV: 9 how many milliseconds a free record lasts.
if holder == ARGV[4] and kept == '0' and ARGV[1] ~= ''
    and redis.call('HGET', KEYS[1], '#r') == ARGV[1] then
  redis.call('SET', KEYS[2], fence .. '|' .. fence .. '|0|\0' .. ARGV[3], 'PX', ARGV[9])
  return { 14 }
end
