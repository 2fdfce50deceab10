-- Append one driver's batch, keep the snapshot, renew the lease and report a cancel request: atomically.
--
-- KEYS  1 log  2 meta  3 text  4 reasoning  5 facts  6 blocks
-- ARGV  1 number  2 attempt  3 seq the log must hold before  4 state after  5 lease ms  6 retention ms
--       7 restore 0|1  8 terminal 0|1, then for each entry: kind, seq, block index, payload
-- Returns {status, seq, cursor, cancel_at, cancel_by}
--       status 0 written, 1 fenced (newer attempt, or the end), 2 lost (less is stored than was written;
--       seq is what is stored, -1 for nothing); cancel_at is 0 without a request
local log, meta, text, reasoning, facts, blocks = unpack(KEYS)
local number, attempt, last_seq = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local known = redis.call("HMGET", meta, "attempt", "seq", "ended", "cancel_at", "cancel_by")
local stored_attempt, seq = tonumber(known[1] or 0), tonumber(known[2] or 0)

if stored_attempt > attempt then return { 1, seq, "", 0, "" } end
if stored_attempt < attempt then
  if ARGV[7] == "0" then return { 2, -1, "", 0, "" } end
  redis.call("DEL", text, reasoning, facts, blocks)
  redis.call("HDEL", meta, "ended", "newest")
  seq = 0
end
if last_seq > seq then return { 2, seq, "", 0, "" } end
if known[3] and stored_attempt == attempt then
  -- A retry of the write that ended it gets its answer again; anything else comes too late.
  local newest = #ARGV > 8 and tonumber(ARGV[#ARGV - 2]) or 0
  if newest > seq or #ARGV == 8 then return { 1, seq, "", 0, "" } end
  return { 0, seq, redis.call("HGET", meta, "cursor"), 0, "" }
end

local cursor = ""
for i = 9, #ARGV, 4 do
  local kind, entry_seq, index, payload = ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2], ARGV[i + 3]
  local is_view = kind == "b"
  if entry_seq > seq or (is_view and entry_seq == seq) then
    cursor = redis.call("XADD", log, "*", "h", number .. " " .. ARGV[2] .. " " .. ARGV[i + 1] .. " " .. kind, "x", payload)
    if is_view then
      redis.call("HSET", blocks, index, payload)
      redis.call("HSET", meta, "newest", index)
    else
      if kind == "t" then redis.call("APPEND", text, payload)
      elseif kind == "r" then redis.call("APPEND", reasoning, payload)
      else redis.call("RPUSH", facts, payload) end
      seq = entry_seq
    end
  end
end

local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call("HSET", meta, "attempt", ARGV[2], "seq", seq, "state", ARGV[4], "lease", now + tonumber(ARGV[5]), "cursor", cursor)
redis.call("PEXPIRE", log, ARGV[6])
if ARGV[8] == "1" then
  redis.call("HSET", meta, "ended", 1)
  for i = 2, 6 do redis.call("PEXPIRE", KEYS[i], ARGV[6]) end
  redis.call("XTRIM", log, "MINID", "~", now - tonumber(ARGV[6]))
end
return { 0, seq, cursor, tonumber(known[4] or 0), known[5] or "" }
