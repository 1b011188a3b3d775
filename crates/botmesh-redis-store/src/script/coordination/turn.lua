-- What the scripts about one key share. KEYS: 2 turn, 3 queue. ARGV: 4 the caller's ticket, 5 how
-- many milliseconds a held record lasts, 6 key, 7 what channels begin with, 8 PUBLISH or SPUBLISH.
--
-- A turn is `fence|previous fence|1 if tickets may wait|holder`, a NUL, and the previous holder. A
-- ticket is `sequence/incarnation`. The queue is a list of tickets, the next one first.
local fence, previous_fence, waits, holder, previous = '0', '', false, '', ''
local turn = redis.call('GET', KEYS[2])
if turn then
  local flag
  fence, previous_fence, flag, holder, previous =
    string.match(turn, '^(%d+)|(%d*)|(%d)|([^%z]*)%z(.*)$')
  waits = flag == '1'
end

local function keep(milliseconds)
  redis.call('SET', KEYS[2],
    fence .. '|' .. previous_fence .. '|' .. (waits and '1' or '0') .. '|' .. holder .. '\0' .. previous,
    'PX', milliseconds)
  if waits then
    redis.call('PEXPIRE', KEYS[3], milliseconds)
  end
end

local function incarnation_of(ticket)
  return string.match(ticket, '/(.*)$')
end

local function vacate()
  previous, previous_fence, holder = incarnation_of(holder), fence, ''
end

local function grant(ticket)
  fence, holder = text(math.max(fence + 1, now, floor + 1)), ticket
end

-- Takes the next ticket whose session may live, with its lease, and skips those of the dead.
local popped = 0
local function next_ticket()
  while waits do
    local ticket = redis.call('LPOP', KEYS[3])
    if not ticket then
      waits = false
      return nil
    end
    popped = popped + 1
    local remaining, lease = judge(incarnation_of(ticket))
    if remaining then
      waits = redis.call('EXISTS', KEYS[3]) == 1
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
