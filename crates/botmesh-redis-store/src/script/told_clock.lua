-- For tests: the time is told.
local stamp = ARGV[#ARGV]
local now = tonumber(stamp)
