
-- Numbers up to 2^53 as text; without a format they would be rounded to 14 digits.
local function text(number)
  return string.format('%.0f', number)
end
