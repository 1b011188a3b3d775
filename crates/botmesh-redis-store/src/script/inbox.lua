-- What the inbox scripts share.
--
-- All records of a chat that have not ended, and its dead letters, are one hash. A record at the
-- position P has the fields P state (p pending, k claimed, d dead), Pi identity, Pq the request
-- that changed it last, Pb body, Pf fence (20 digits, so that texts compare as numbers do), Pn how
-- often it was begun, Ps sends, Pe error, Pd when it is due, Pt when it was given up. Its identity
-- is a field as well, with the position: m and the message's id or, without one, q and the request.
-- When it is done all of this goes, and its name stays in the set of what is done.

-- A record among those of all chats.
local function place(position, chat)
  return position .. '|' .. chat
end

-- A message among those of all chats.
local function name(chat, identity)
  return #chat .. ':' .. chat .. identity
end

-- A dead letter: the texts sort as chat and position do, since no chat has a byte of zero.
local function letter(chat, position)
  return chat .. '\0' .. string.rep('0', 20 - #position) .. position
end

local function drop(records, position, identity)
  local p = position
  redis.call('HDEL', records, identity, p, p .. 'i', p .. 'q', p .. 'b', p .. 'f', p .. 'n',
    p .. 's', p .. 'e', p .. 'd', p .. 't')
end
