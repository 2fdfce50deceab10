-- Count one more thing of an owner, unless there were too many within the window that ends now.
--
-- KEYS  1 times: sorted set, unique word → epoch ms
-- ARGV  1 how many are allowed  2 window, ms  3 a word used once
-- Returns 0, or the milliseconds after which there is room again
local times, window = KEYS[1], tonumber(ARGV[2])
local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call("ZREMRANGEBYSCORE", times, "-inf", now - window)
if redis.call("ZCARD", times) >= tonumber(ARGV[1]) then
  local oldest = redis.call("ZRANGE", times, 0, 0, "WITHSCORES")
  return math.max(1, oldest[2] + window - now)
end
redis.call("ZADD", times, now, ARGV[3])
redis.call("PEXPIRE", times, window)
return 0
