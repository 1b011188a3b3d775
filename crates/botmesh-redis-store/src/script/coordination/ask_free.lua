-- The usual case, before the tools for all others are made: nobody has the key or waits for it, and
-- the server is the same as before.
if holder == '' and kept == '0' and own and run == server and grace_until <= now
    and ARGV[9] ~= 'P' then
  local expires, epoch = string.match(own, '^(%d+)|%d+|%d+|(%d+)$')
  if tonumber(expires) > now and tonumber(ARGV[10]) >= tonumber(epoch) then
    local least = math.max(fence, floor) + 1
    fence = now >= least and stamp or text(least)
    redis.call('SET', KEYS[2],
      fence .. '|' .. previous_fence .. '|0|' .. ARGV[4] .. '\0' .. previous, 'PX', ARGV[5])
    return { 7, fence, previous_fence, previous }
  end
end
