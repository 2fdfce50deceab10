-- Keep the live connections of an owner, and say whether there may be one more.
--
-- Each connection is a member of its own, so it does not matter in which order the calls of a process arrive, whether
-- one arrives twice, or after its caller has given it up.
--
-- KEYS  1 sorted set: connection → until when it counts, epoch ms
-- ARGV  1 how long they count from now, ms  2 how many are allowed; 0 for any number  3 how many of those named have
--       closed  4… connections: those, and then the open ones
-- Returns how many there are now, or -1 when the open ones are too many, and then none of them was added
local key, holds, most, closed = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call("ZREMRANGEBYSCORE", key, "-inf", now)
for i = 4, 3 + closed do
  redis.call("ZREM", key, ARGV[i])
end
if most > 0 and redis.call("ZCARD", key) + #ARGV - 3 - closed > most then return -1 end
for i = 4 + closed, #ARGV do
  redis.call("ZADD", key, now + holds, ARGV[i])
end
redis.call("PEXPIRE", key, holds)
return redis.call("ZCARD", key)
