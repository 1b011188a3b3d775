-- The server's clock in microseconds; it stands still while a script runs.
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
-- The same as text: cheaper than to write the number.
local stamp = clock[1] .. string.sub('00000' .. clock[2], -6)
