-- What the scripts of the coordinator share: a transcription of the transition function in
-- botmesh-core, with its names. KEYS[1]: sessions. ARGV: 1 the run of the server, or nothing to
-- find it out here, 2 grace, 3 the caller.
--
-- The sessions are a hash: of each incarnation `expires|lease|registered|epoch`, and for all of
-- them #f the floor of fences, #g the end of grace, #r the run of the server, #s since when that is
-- known, #j when a heartbeat last showed that the clock was set forward. All times are microseconds.
local server = ARGV[1]
if server == '' then
  server = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
end
local own, floor, grace_until, run =
  unpack(redis.call('HMGET', KEYS[1], ARGV[3], '#f', '#g', '#r'))
floor, grace_until = tonumber(floor) or 0, tonumber(grace_until) or 0
