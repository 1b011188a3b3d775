-- Answers 6 stopped.
redis.call('HDEL', KEYS[1], ARGV[3])
return { 6 }
