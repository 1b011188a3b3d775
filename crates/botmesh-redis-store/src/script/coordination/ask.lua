-- ARGV: 9 R to reserve, A to attempt, P to poll, 10 epoch, 11 how many tickets may wait. Answers
-- 7 granted, 8 queued, 9 busy, 10 full, 11 superseded, 12 no session or 13 stale.
local how, ticket = ARGV[9], ARGV[4]

local function granted()
  return { 7, fence, previous_fence, previous }
end

if not own or own_expires <= now then
  return { 12 }
end
if how ~= 'P' and tonumber(ARGV[10]) < own_epoch then
  return { 13 }
end
if holder == ticket then
  return granted()
end
local grace = math.max(0, grace_until - now)
if holder == '' and (kept == '0' or redis.call('EXISTS', KEYS[3]) == 0) then
  kept = '0'
  if how == 'P' then
    return { 11 }
  end
  if grace == 0 then
    grant(ticket)
    keep(ARGV[5])
    return granted()
  end
  if how == 'A' then
    return { 9, grace }
  end
end

-- Makes sure that the ticket waits, unless it only attempts.
local place = 0
-- Whether nothing needs to be written, unless a change follows.
local unchanged = false
if how ~= 'A' then
  place = kept ~= '0' and redis.call('LPOS', KEYS[3], ticket)
  if not place then
    if how == 'P' then
      return { 11 }
    end
    if not turn then
      -- What an expired record may have left.
      redis.call('DEL', KEYS[3])
    end
    place = redis.call('RPUSH', KEYS[3], ticket) - 1
    if place >= tonumber(ARGV[11]) then
      redis.call('RPOP', KEYS[3])
      return { 10, place }
    end
    if place == 0 then
      keep_queue(ARGV[5])
    else
      unchanged = not is_queue_stale(ARGV[5])
    end
  end
end

local function wait(remaining)
  if not unchanged then
    keep(ARGV[5])
  end
  if how == 'A' then
    return { 9, remaining }
  end
  return { 8, place - popped + (holder == '' and 0 or 1), remaining }
end

if grace > 0 then
  return wait(grace)
end
if holder ~= '' then
  local remaining = judge(incarnation_of(holder))
  if remaining then
    local reply = wait(remaining)
    if how == 'P' then
      -- It may have been released to a server that was lost; then it is given back again.
      wake(holder)
    end
    return reply
  end
  vacate()
end
unchanged = false
local following, lease = next_ticket()
if following and following ~= ticket then
  grant(following)
  local reply = wait(lease)
  wake(following)
  return reply
end
if following or how == 'A' then
  grant(ticket)
  keep(ARGV[5])
  return granted()
end
return wait(0)
