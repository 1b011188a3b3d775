-- ARGV: chat, fence, expected revision or '' or '*', body, wake in or '', expires in or '', memory of
-- fences, request. Answers the new revision, or false when the condition does not hold.
local function change_checkpoint()
  if live and request == ARGV[8] then
    return revision
  end
  if ARGV[3] ~= '*' and ((live and revision) or '') ~= ARGV[3] then
    return false
  end
  local raised = ARGV[2]
  if fence and fence > raised then
    if ARGV[3] ~= '*' then
      return false
    end
    raised = fence
  end
  forget_wake()
  revision = next_number(revision)
  redis.call('DEL', KEYS[1])
  redis.call('HSET', KEYS[1], 'r', revision, 'f', raised, 'q', ARGV[8], 'l', '1', 'b', ARGV[4])
  local expires = ''
  if ARGV[6] ~= '' then
    expires = text(now + ARGV[6])
    redis.call('HSET', KEYS[1], 'e', expires)
    redis.call('PEXPIRE', KEYS[1], milliseconds(ARGV[6] + ARGV[7]))
  end
  if ARGV[5] ~= '' then
    local due = text(now + ARGV[5])
    redis.call('HSET', KEYS[1], 'w', due)
    -- One that ends before is never woken.
    if expires == '' or tonumber(due) < tonumber(expires) then
      redis.call('ZADD', KEYS[2], due, expires .. '|' .. ARGV[1])
    end
  end
  return revision
end
