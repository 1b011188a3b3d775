-- For tests: the time is told.
local now = tonumber(ARGV[#ARGV])
