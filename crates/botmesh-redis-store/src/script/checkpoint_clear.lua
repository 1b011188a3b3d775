-- ARGV: chat, fence, expected revision or '*', memory of fences, request.
-- Answers the revision of the removal, or false when the condition does not hold.
local function change_checkpoint()
  if revision and not live and request == ARGV[5] then
    return revision
  end
  if ARGV[3] == '*' then
    if not live then
      return revision or '0'
    end
  elseif not live or revision ~= ARGV[3] or (fence and fence > ARGV[2]) then
    return false
  end
  local raised = ARGV[2]
  if fence and fence > raised then
    raised = fence
  end
  revision = next_number(revision)
  remember(raised, ARGV[5], ARGV[4])
  return revision
end
