-- KEYS: the records of each letter's chat. ARGV: the position of each letter.
-- Answers of each letter how often it was begun, its error, its age and its body, or false where
-- there is none any more.
local letters = {}
for at = 1, #KEYS do
  local p = ARGV[at]
  local state, attempts, error, since, body =
    unpack(redis.call('HMGET', KEYS[at], p, p .. 'n', p .. 'e', p .. 't', p .. 'b'))
  letters[at] = state == 'd' and { attempts or '0', error, text(math.max(0, now - since)), body }
end
return letters
