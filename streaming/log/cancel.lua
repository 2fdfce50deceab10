-- Record that someone asked to stop a generation, once, and tell drivers and readers; the first request stays.
--
-- KEYS  1 meta  2 log  3 wake
-- ARGV  1 who asked  2 longest life of an unfinished generation, ms  3 channel  4 generation's UUID  5 retention ms
-- Returns {granted 0|1, attempt, seq, state, cancel_at, cancel_by, is an attempt known 0|1}; granted 0 when it had ended
local meta, log = KEYS[1], KEYS[2]
local known = redis.call("HMGET", meta, "attempt", "seq", "state", "ended", "cancel_at", "cancel_by")
local attempt, seq, state = tonumber(known[1] or 0), tonumber(known[2] or 0), known[3] or "queued"
local was_known = known[1] and 1 or 0
if known[4] then return { 0, attempt, seq, state, tonumber(known[5] or 0), known[6] or "", was_known } end
if not known[5] then
  local time = redis.call("TIME")
  known[5], known[6] = time[1] * 1000 + math.floor(time[2] / 1000), ARGV[1]
  redis.call("HSET", meta, "cancel_at", known[5], "cancel_by", known[6])
  redis.call("PEXPIRE", meta, ARGV[2])
  -- Every tab shows at once that the answer is being stopped, not only the one that asked.
  local view = '{"v":1,"type":"cancel","gen":%s,"at":%.0f,"by":%s}'
  view = string.format(view, cjson.encode(ARGV[4]), known[5], cjson.encode(ARGV[1]))
  redis.call("XADD", log, "*", "0 0 n", view, "s", 0)
  redis.call("XADD", KEYS[3], "MAXLEN", 1, "*", "s", 0)
  redis.call("PEXPIRE", log, ARGV[5])
end
redis.call("PUBLISH", ARGV[3], ARGV[4])
return { 1, attempt, seq, state, tonumber(known[5]), known[6], was_known }
