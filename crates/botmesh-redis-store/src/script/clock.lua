-- The server's clock in microseconds; it stands still while a script runs.
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

-- Numbers up to 2^53 as text; without a format they would be rounded to 14 digits.
local function text(number)
  return string.format('%.0f', number)
end

-- A number that this key never had: a hybrid logical clock over the last one.
local function next_number(last)
  return text(math.max(now, (tonumber(last) or 0) + 1))
end

local function milliseconds(microseconds)
  return text(math.ceil(microseconds / 1000))
end
