-- ARGV: 4 epoch, 5 age of the last renewal. Answers 3 renewed, 4 jumped or 5 expired.
--
-- What lies in the future by a clock that was set back began now.
local since, jumped = unpack(redis.call('HMGET', KEYS[1], '#s', '#j'))
if since and tonumber(since) > now then
  grace_until = now + math.max(0, grace_until - since)
  redis.call('HSET', KEYS[1], '#s', text(now), '#g', text(grace_until))
end
if jumped and tonumber(jumped) > now then
  redis.call('HSET', KEYS[1], '#j', text(now))
end
if not own then
  return { 5 }
end
local age = tonumber(ARGV[5])
local expired = own_expires <= now
if expired and age >= own_lease / 2 then
  redis.call('HDEL', KEYS[1], ARGV[3])
  return { 5 }
end
-- More time has passed here than for the caller, by more than local deadlines keep in reserve: this
-- clock was set forward, for all sessions.
local reserve = math.min(math.max(own_lease / 10, 250000), 2000000, own_lease / 2)
local reply = 3
if expired or now - (own_expires - own_lease) - age > reserve then
  redis.call('HSET', KEYS[1], '#j', text(now))
  reply = 4
end
own_expires, own_registered = now + own_lease, math.min(own_registered, now)
write_session(ARGV[3], own_expires, own_lease, own_registered, math.max(own_epoch, ARGV[4]))
raise_floor()
-- Removes what expired more than a lease ago. To be absent is to be dead.
local sessions = redis.call('HGETALL', KEYS[1])
for at = 1, #sessions, 2 do
  local expires, lease = read_session(sessions[at + 1])
  if expires and expires + lease <= now and not doubt(lease, expires) then
    redis.call('HDEL', KEYS[1], sessions[at])
  end
end
keep_sessions()
return { reply }
