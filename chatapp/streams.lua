-- Keep how many live connections of an owner a web process has, and say whether there may be one more.
--
-- KEYS  1 hash: process → "count until", where until is epoch ms
-- ARGV  1 process  2 how many it has, the new one included  3 how long that holds, ms  4 how many are allowed;
--       0 only keeps the number
-- Returns 1, or 0 when the new one is too many and was not counted
local key, process, count, most = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[4])
local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local others, all = 0, redis.call("HGETALL", key)
for i = 1, #all, 2 do
  local theirs, holds_until = string.match(all[i + 1], "(%d+) (%d+)")
  if tonumber(holds_until) < now then
    redis.call("HDEL", key, all[i])
  elseif all[i] ~= process then
    others = others + tonumber(theirs)
  end
end
local granted = most == 0 or others + count <= most
if not granted then count = count - 1 end
if count > 0 then
  redis.call("HSET", key, process, string.format("%d %.0f", count, now + tonumber(ARGV[3])))
  redis.call("PEXPIRE", key, ARGV[3])
else
  redis.call("HDEL", key, process)
end
return granted and 1 or 0
