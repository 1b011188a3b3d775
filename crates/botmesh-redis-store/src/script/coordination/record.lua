-- Reads the record of one key. KEYS: 2 turn, 3 queue. ARGV: 4 the caller's ticket, 5 how many
-- milliseconds a held record lasts, 6 key, 7 what channels begin with, 8 PUBLISH or SPUBLISH.
--
-- A turn is `fence|previous fence|kept|holder`, a NUL, and the previous holder. A ticket is
-- `sequence/incarnation`. The queue is a list of tickets, the next one first: there is none while
-- `kept` is 0, and there may be one while it is the time when the queue was last told to stay.
local fence, previous_fence, kept, holder, previous = '0', '', '0', '', ''
local turn = redis.call('GET', KEYS[2])
if turn then
  fence, previous_fence, kept, holder, previous =
    string.match(turn, '^(%d+)|(%d*)|(%d+)|([^%z]*)%z(.*)$')
end
