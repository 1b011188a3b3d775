-- KEYS: done, claims, buried. ARGV: how long what is done and dead letters are kept, limit.
-- Forgets what is done. Answers how many, and the places of claims and letters that may go as well.
local limit = tonumber(ARGV[3])
local done = redis.call('ZRANGE', KEYS[1], '-inf', text(now - ARGV[1]), 'BYSCORE', 'LIMIT', 0, limit)
if #done > 0 then
  redis.call('ZREM', KEYS[1], unpack(done))
end
local places = {}
for at, last in ipairs({ stamp, text(now - ARGV[2]) }) do
  local room = limit - #done - #places
  if room > 0 then
    for _, found in ipairs(redis.call('ZRANGE', KEYS[at + 1], '-inf', last, 'BYSCORE', 'LIMIT', 0, room)) do
      places[#places + 1] = found
    end
  end
end
return { #done, places }
