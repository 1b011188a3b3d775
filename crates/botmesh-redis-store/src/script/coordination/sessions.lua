-- What the scripts of the coordinator share: a transcription of the transition function in
-- botmesh-core, with its names. KEYS[1]: sessions. ARGV: 1 the run of the server, or nothing to
-- find it out here, 2 grace, 3 the caller.
--
-- The sessions are a hash: of each incarnation `expires|lease|registered|epoch`, and for all of
-- them #f the floor of fences, #g the end of grace, #r the run of the server. All times are
-- microseconds.
local server = ARGV[1]
if server == '' then
  server = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
end
local own, floor, grace_until, run =
  unpack(redis.call('HMGET', KEYS[1], ARGV[3], '#f', '#g', '#r'))
floor, grace_until = tonumber(floor) or 0, tonumber(grace_until) or 0

-- Longer than anything that only its fences protect.
local function keep_sessions()
  redis.call('PEXPIRE', KEYS[1], '172800000')
end

-- Another server than before, or one that was wiped: whoever was granted something may believe in
-- it until its lease ends.
if run ~= server then
  floor = math.max(floor, now)
  grace_until = math.max(grace_until, now + ARGV[2])
  redis.call('HSET', KEYS[1], '#r', server, '#f', text(floor), '#g', text(grace_until))
  keep_sessions()
end

local function read_session(session)
  local expires, lease, registered, epoch = string.match(session, '^(%d+)|(%d+)|(%d+)|(%d+)$')
  return tonumber(expires), tonumber(lease), tonumber(registered), tonumber(epoch)
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

-- Why the caller may not take a session with this lease for dead, as the time after which it may.
local function doubt(lease)
  if not own then
    return lease
  end
  local newcomer = own_registered + lease - now
  if newcomer > 0 then
    return newcomer
  end
  if math.max(0, own_expires - now) < own_lease / 2 then
    return own_lease / 3
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
  local remaining = doubt(lease)
  if remaining then
    return remaining, lease
  end
  redis.call('HDEL', KEYS[1], incarnation)
  if incarnation == ARGV[3] then
    own = false
  end
  return nil
end
