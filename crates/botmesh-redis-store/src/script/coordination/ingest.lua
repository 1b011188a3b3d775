-- KEYS: sessions, turn, queue, and those of an admission. ARGV: as for a reservation, and those of
-- an admission of a message with its body.
-- Answers the admission, what the reservation answered and whether the record was begun, by a turn
-- that was granted at once; of a message that is not new the admission alone.
local admitted = admit({ unpack(KEYS, 4) }, { unpack(ARGV, 12) })
if not admitted or #admitted == 1 then
  return { admitted }
end
local reply, begun = reserve(), 0
if reply[1] == 7 and admitted[2] == 0 and ARGV[17] == 'p' then
  local position, granted = admitted[1], reply[2]
  redis.call('HSET', KEYS[4], position .. 'f', string.rep('0', 20 - #granted) .. granted,
    position .. 'n', '1')
  begun = 1
end
return { admitted, reply, begun }
