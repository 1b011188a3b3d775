-- How the scripts of the coordinator judge sessions.

-- Longer than anything that only its fences protect.
local function keep_sessions()
  redis.call('PEXPIRE', KEYS[1], '172800000')
end

local function read_session(session)
  local expires, lease, registered, epoch = string.match(session, '^(%d+)|(%d+)|(%d+)|(%d+)$')
  return tonumber(expires), tonumber(lease), tonumber(registered), tonumber(epoch)
end

-- The shortest and the longest lease of all sessions that expire later; zero without any.
local function leases_after(moment)
  local shortest, longest = nil, 0
  for _, session in ipairs(redis.call('HVALS', KEYS[1])) do
    local expires, lease = read_session(session)
    if expires and expires > moment then
      shortest, longest = math.min(shortest or lease, lease), math.max(longest, lease)
    end
  end
  return shortest or 0, longest
end

-- Grants nothing until the server has run for so long. A grace of zero switches that off.
local function extend_grace(grace)
  local since = tonumber(redis.call('HGET', KEYS[1], '#s'))
  if since and tonumber(ARGV[2]) > 0 then
    grace_until = math.max(grace_until, since + grace)
    redis.call('HSET', KEYS[1], '#g', text(grace_until))
  end
end

-- Another server than before, or one that was wiped: whoever was granted something may believe in
-- it until its lease ends, which may be longer than the caller's.
if run ~= server then
  floor = math.max(floor, now)
  redis.call('HSET', KEYS[1], '#r', server, '#s', text(now), '#f', text(floor))
  local _, longest = leases_after(-1)
  extend_grace(math.max(longest, ARGV[2]))
  keep_sessions()
end

local own_expires, own_lease, own_registered, own_epoch
if own then
  own_expires, own_lease, own_registered, own_epoch = read_session(own)
end

local function write_session(incarnation, expires, lease, registered, epoch)
  redis.call('HSET', KEYS[1], incarnation,
    string.format('%.0f|%.0f|%.0f|%.0f', expires, lease, registered, epoch))
end

local function raise_floor()
  redis.call('HSET', KEYS[1], '#f', text(math.max(floor, now)))
end

-- Why the caller may not take a session for dead that looks expired, as the time after which it
-- may; zero when it only has to renew its own session before.
local function doubt(lease, expires)
  if not own then
    return lease
  end
  local jumped = tonumber(redis.call('HGET', KEYS[1], '#j')) or 0
  local steady, confirmed = math.max(own_registered, jumped) + lease, own_expires - own_lease
  if steady > now then
    return steady - now
  end
  if confirmed > now or confirmed < expires or confirmed < steady then
    return 0
  end
  return nil
end

-- How long a session lives at least, and its lease; nothing when it is dead, and buried then.
local function judge(incarnation)
  local session = own
  if incarnation ~= ARGV[3] then
    session = redis.call('HGET', KEYS[1], incarnation)
  end
  if not session then
    return nil
  end
  local expires, lease, registered, epoch = read_session(session)
  if incarnation == ARGV[3] then
    expires = own_expires
  end
  -- Written before the clock was set back: no renewal can reach so far.
  if expires - now > lease * 2 then
    expires = now + lease
    write_session(incarnation, expires, lease, registered, epoch)
    if incarnation == ARGV[3] then
      own_expires = expires
    end
  end
  if expires > now then
    return expires - now, lease
  end
  local remaining = doubt(lease, expires)
  if remaining then
    return remaining, lease
  end
  redis.call('HDEL', KEYS[1], incarnation)
  if incarnation == ARGV[3] then
    own = false
  end
  return nil
end
