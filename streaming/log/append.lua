-- Append one driver's batch, keep the snapshot, renew the lease and report a cancel request: atomically. After
-- the end no snapshot is kept: by then the database has the answer.
--
-- KEYS  1 log  2 meta  3 text  4 reasoning  5 facts  6 blocks
-- ARGV  1 "number attempt held state lease_ms retention_ms restore terminal": `held` is the seq the log must
--       hold before, `state` the one after, restore and terminal are 0 or 1; then for each entry its header,
--       "number attempt seq kind" and for a block its index, and its payload. (One argument costs more to
--       send than its parts cost to take apart here.)
-- Meta counts what the other keys must hold, "text reasoning facts blocks" (bytes, bytes, items, items): a key that
-- was evicted, deleted or written twice is noticed by the next write, or by the next renewal.
-- Returns {status, seq, cursor, cancel_at, cancel_by}
--       status 0 written, 1 fenced (newer attempt, or the end), 2 lost (less is stored than was written;
--       seq is what is stored, -1 for nothing); cancel_at is 0 without a request. Unless 0, nothing was written.
local log, meta, text, reasoning, facts, blocks = unpack(KEYS)
local attempt, held, state, lease, retention, restore, terminal =
  string.match(ARGV[1], "^%d+ (%d+) (%d+) ([%l_]+) (%d+) (%d+) (%d) (%d)$")
attempt, held = tonumber(attempt), tonumber(held)
local known = redis.call("HMGET", meta, "attempt", "seq", "ended", "cancel_at", "cancel_by", "sizes")
local stored_attempt, seq, sizes = tonumber(known[1] or 0), tonumber(known[2] or 0), known[6]
local stored_sizes = string.format("%d %d %d %d", redis.call("STRLEN", text), redis.call("STRLEN", reasoning),
  redis.call("LLEN", facts), redis.call("HLEN", blocks))
local is_whole = not sizes or sizes == stored_sizes

if stored_attempt > attempt then return { 1, seq, "", 0, "" } end
if stored_attempt < attempt or not (is_whole or known[3]) then
  if restore == "0" then return { 2, -1, "", 0, "" } end
  redis.call("HDEL", meta, "ended", "newest")
  seq, sizes = 0, nil
end
if held > seq then return { 2, seq, "", 0, "" } end
if known[3] and stored_attempt == attempt then
  -- A retry of the write that ended it gets its answer again; anything else comes too late.
  local newest = #ARGV > 1 and tonumber(string.match(ARGV[#ARGV - 1], "^%d+ %d+ (%d+)"))
  if not newest or newest > seq then return { 1, seq, "", 0, "" } end
  return { 0, seq, redis.call("HGET", meta, "cursor"), 0, "" }
end

if not sizes then
  -- The first write, or the first again: what an older meta left behind does not belong to it.
  redis.call("DEL", text, reasoning, facts, blocks)
  sizes = "0 0 0 0"
end
local texts, reasonings, items, views = string.match(sizes, "^(%d+) (%d+) (%d+) (%d+)$")
texts, reasonings, items, views = tonumber(texts), tonumber(reasonings), tonumber(items), tonumber(views)

local cursor = ""
for i = 2, #ARGV, 2 do
  local header, payload = ARGV[i], ARGV[i + 1]
  local entry_seq, kind, index = string.match(header, " (%d+) (%l) ?(%d*)$")
  entry_seq = tonumber(entry_seq)
  local is_view = kind == "b"
  if entry_seq > seq or (is_view and entry_seq == seq) then
    cursor = redis.call("XADD", log, "*", "h", header, "x", payload)
    if is_view then
      views = views + redis.call("HSET", blocks, index, payload)
      redis.call("HSET", meta, "newest", index)
    else
      if kind == "t" then
        texts = redis.call("APPEND", text, payload)
      elseif kind == "r" then
        reasonings = redis.call("APPEND", reasoning, payload)
      else
        items = redis.call("RPUSH", facts, payload)
      end
      seq = entry_seq
    end
  end
end

local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)
sizes = string.format("%d %d %d %d", texts, reasonings, items, views)
redis.call("HSET", meta, "attempt", attempt, "seq", seq, "state", state, "lease", now + tonumber(lease),
  "cursor", cursor, "sizes", sizes)
redis.call("PEXPIRE", log, retention)
if terminal == "1" then
  redis.call("HSET", meta, "ended", 1)
  redis.call("PEXPIRE", meta, retention)
  redis.call("UNLINK", text, reasoning, facts, blocks)
  redis.call("XTRIM", log, "MINID", "~", now - tonumber(retention))
end
return { 0, seq, cursor, tonumber(known[4] or 0), known[5] or "" }
