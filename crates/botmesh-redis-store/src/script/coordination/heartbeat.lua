-- ARGV: 4 epoch, 5 age of the last renewal. Answers 3 renewed, 4 jumped or 5 expired.
if not own then
  return { 5 }
end
local reply = 3
if own_expires <= now then
  if tonumber(ARGV[5]) >= own_lease / 2 then
    redis.call('HDEL', KEYS[1], ARGV[3])
    return { 5 }
  end
  -- By the caller's own clock it cannot have expired: this clock has jumped, for all sessions.
  -- Nothing is granted until each had the time to renew.
  redis.call('HSET', KEYS[1], '#g', text(math.max(grace_until, now + own_lease)))
  reply = 4
end
-- Removes what expired more than a lease ago. To be absent is to be dead.
local sessions = redis.call('HGETALL', KEYS[1])
for at = 1, #sessions, 2 do
  local expires, lease = read_session(sessions[at + 1])
  if expires and expires + lease <= now and not doubt(lease) then
    redis.call('HDEL', KEYS[1], sessions[at])
  end
end
write_session(ARGV[3], now + own_lease, own_lease, math.min(own_registered, now),
  math.max(own_epoch, ARGV[4]))
raise_floor()
keep_sessions()
return { reply }
