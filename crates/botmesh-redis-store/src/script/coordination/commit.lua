-- KEYS: sessions, turn, queue, and those of a commit. ARGV: as for a release, and those of a commit.
-- Answers what the commit answered and, unless it was refused, what the release answered.
local committed = commit({ unpack(KEYS, 4) }, { unpack(ARGV, 10) })
if not committed then
  return { false }
end
return { committed, release() }
