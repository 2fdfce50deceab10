-- Take a generation that nobody drives, and raise its attempt.
--
-- KEYS  1 meta
-- ARGV  1 newest attempt the database knows  2 lease ms  3 longest life of an unfinished generation, ms
-- Returns {granted 0|1, attempt, seq, state, cancel_at, cancel_by, is an earlier attempt known 0|1}
local meta = KEYS[1]
local known = redis.call("HMGET", meta, "attempt", "seq", "state", "lease", "ended", "cancel_at", "cancel_by")
local attempt, seq, state = tonumber(known[1] or 0), tonumber(known[2] or 0), known[3] or "queued"
local was_known = known[1] and 1 or 0
local cancel_at, cancel_by = tonumber(known[6] or 0), known[7] or ""
local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local left, lease_ms = tonumber(known[4] or 0) - now, tonumber(ARGV[2])
-- A lease that runs for longer than leases do was given before the clock stepped back: its driver's next renewal
-- sets it right, so one that stays so has none.
if known[5] or (left > 0 and left <= 2 * lease_ms) then
  return { 0, attempt, seq, state, cancel_at, cancel_by, was_known }
end
attempt = math.max(attempt, tonumber(ARGV[1])) + 1
redis.call("HSET", meta, "attempt", attempt, "seq", seq, "state", state, "lease", now + lease_ms)
redis.call("PEXPIRE", meta, ARGV[3])
return { 1, attempt, seq, state, cancel_at, cancel_by, was_known }
