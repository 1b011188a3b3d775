-- KEYS: done, claims, buried. ARGV: how long what is done and dead letters are kept.
-- Answers how many need not be kept.
return redis.call('ZCOUNT', KEYS[1], '-inf', text(now - ARGV[1]))
  + redis.call('ZCOUNT', KEYS[2], '-inf', stamp)
  + redis.call('ZCOUNT', KEYS[3], '-inf', text(now - ARGV[2]))
