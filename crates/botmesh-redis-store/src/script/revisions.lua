
-- A number that this key never had: a hybrid logical clock over the last one.
local function next_number(last)
  return text(math.max(now, (tonumber(last) or 0) + 1))
end

local function milliseconds(microseconds)
  return text(math.ceil(microseconds / 1000))
end
