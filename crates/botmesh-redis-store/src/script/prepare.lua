-- KEYS: the description of the space. ARGV: schema version, layout.
-- Writes what is not there yet. Answers what is there.
redis.call('HSETNX', KEYS[1], 'version', ARGV[1])
redis.call('HSETNX', KEYS[1], 'layout', ARGV[2])
return redis.call('HMGET', KEYS[1], 'version', 'layout')
