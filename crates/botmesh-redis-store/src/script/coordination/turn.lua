-- How the scripts about one key change its record.

local function is_queue_stale(milliseconds)
  return kept ~= '0' and now - kept > milliseconds * 500
end

local function keep_queue(milliseconds)
  redis.call('PEXPIRE', KEYS[3], milliseconds)
  kept = stamp
end

local function keep(milliseconds)
  if is_queue_stale(milliseconds) then
    keep_queue(milliseconds)
  end
  redis.call('SET', KEYS[2],
    fence .. '|' .. previous_fence .. '|' .. kept .. '|' .. holder .. '\0' .. previous,
    'PX', milliseconds)
end

local function incarnation_of(ticket)
  return string.match(ticket, '/(.*)$')
end

local function vacate()
  previous, previous_fence, holder = incarnation_of(holder), fence, ''
end

local function grant(ticket)
  local least = math.max(fence + 1, floor + 1)
  fence, holder = now >= least and stamp or text(least), ticket
end

-- Takes the next ticket whose session may live, with its lease, and skips those of the dead.
local popped = 0
local function next_ticket()
  while kept ~= '0' do
    local ticket = redis.call('LPOP', KEYS[3])
    if not ticket then
      kept = '0'
      return nil
    end
    popped = popped + 1
    local remaining, lease = judge(incarnation_of(ticket))
    if remaining then
      return ticket, lease
    end
  end
  return nil
end

-- Tells a waiting ticket that it was granted. That is a hint: when it fails, the ticket polls.
local function wake(ticket)
  local sequence, incarnation = string.match(ticket, '^(%d+)/(.*)$')
  redis.pcall(ARGV[8], ARGV[7] .. incarnation,
    sequence .. '|' .. fence .. '|' .. previous_fence .. '|' .. ARGV[6] .. '\0' .. previous)
end
