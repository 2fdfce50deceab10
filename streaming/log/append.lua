-- Append the batches of one process and keep their snapshots, renew the leases and report cancel requests: atomically,
-- and each batch as if it stood alone. After the end no snapshot is kept: by then the database has the answer.
--
-- KEYS  1 wake, then for each batch its generation's meta. The log and the generation's other keys are named after it and
--       have its hash tag, so they are not sent: with each token their names would be most of what Redis receives.
-- ARGV  1 lease_ms  2 retention_ms, then for each batch "attempt held state restore terminal entries": `held` is the seq
--       the log must hold before, `state` the one after, restore and terminal are 0 or 1; then for each of its entries
--       its name "number attempt kind", its place "seq" or for a block "seq index", and its payload. (One argument
--       costs more to send than its parts cost to take apart here.)
-- Meta counts what the other keys must hold (text and reasoning in bytes, facts and blocks in items): a key that was
-- evicted, deleted or written twice is noticed by the next write, or by the next renewal.
-- Returns for each batch {status, seq, cursor, cancel_at, cancel_by}
--       status 0 written, 1 fenced (newer attempt, or the end), 2 lost (less is stored than was written; seq is what is
--       stored, -1 for nothing), 3 refused by Redis (seq is its reason); cancel_at is 0 without a request. Unless 0,
--       nothing was written; should Redis refuse in the midst of a batch, the next write finds other sizes.
local lease_ms, retention_ms = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- A log's expiry is moved when it is this much too early: moved with each token it would be a fifth of what the
-- append-only file grows by.
local EXPIRY_SLACK_MS = 60000

local has_written = false

local function is_whole(known, command, key)
  return tonumber(known) == redis.call(command, key)
end

local function append(meta, first, last)
  local own = string.sub(meta, 1, -5)
  local log, text, reasoning = string.match(meta, "^.*}:") .. "log", own .. "text", own .. "reasoning"
  local facts, blocks = own .. "facts", own .. "blocks"
  local attempt, held, state, restore, terminal = string.match(ARGV[first], "^(%d+) (%d+) ([%l_]+) (%d) (%d)")
  attempt, held = tonumber(attempt), tonumber(held)
  local known = redis.call("HMGET", meta, "attempt", "seq", "ended", "cancel_at", "cancel_by",
    "text", "reasoning", "facts", "blocks", "state")
  local stored_attempt, seq, ended, is_new = tonumber(known[1] or 0), tonumber(known[2] or 0), known[3], not known[6]

  if stored_attempt > attempt then return { 1, seq, "", 0, "" } end
  if stored_attempt < attempt or not (ended or is_new or (is_whole(known[6], "STRLEN", text)
    and is_whole(known[7], "STRLEN", reasoning) and is_whole(known[8], "LLEN", facts)
    and is_whole(known[9], "HLEN", blocks))) then
    if restore == "0" then return { 2, -1, "", 0, "" } end
    redis.call("HDEL", meta, "ended", "newest")
    seq, is_new = 0, true
  end
  if held > seq then return { 2, seq, "", 0, "" } end
  if ended and stored_attempt == attempt then
    -- A retry of the write that ended it gets its answer again; anything else comes too late.
    local newest = last > first and tonumber(string.match(ARGV[last - 1], "^%d+"))
    if not newest or newest > seq then return { 1, seq, "", 0, "" } end
    return { 0, seq, redis.call("HGET", meta, "cursor"), 0, "" }
  end

  local texts, reasonings, items, views = known[6], known[7], known[8], known[9]
  if is_new then
    -- The first write, or the first again: what an older meta left behind does not belong to it.
    redis.call("DEL", text, reasoning, facts, blocks)
    texts, reasonings, items, views = 0, 0, 0, 0
  end

  local cursor = ""
  for i = first + 1, last, 3 do
    local name, place, payload = ARGV[i], ARGV[i + 1], ARGV[i + 2]
    local kind = string.sub(name, -1)
    local is_view = kind == "b"
    local entry_seq = tonumber(is_view and string.match(place, "^%d+") or place)
    if entry_seq > seq or (is_view and entry_seq == seq) then
      cursor, has_written = redis.call("XADD", log, "*", name, payload, "s", place), true
      if is_view then
        local index = string.match(place, "%d+$")
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

  -- Only what changed is written: all of it would be half of what the append-only file grows by.
  local changed = { "lease", now + lease_ms }
  local function change(field, old, new)
    if old ~= tostring(new) then
      changed[#changed + 1], changed[#changed + 2] = field, new
    end
  end
  change("attempt", known[1], attempt)
  change("seq", known[2], seq)
  change("state", known[10], state)
  change("text", known[6], texts)
  change("reasoning", known[7], reasonings)
  change("facts", known[8], items)
  change("blocks", known[9], views)
  redis.call("HSET", meta, unpack(changed))
  if terminal == "1" or redis.call("PTTL", log) < retention_ms - EXPIRY_SLACK_MS then
    redis.call("PEXPIRE", log, retention_ms)
  end
  if terminal == "1" then
    redis.call("HSET", meta, "ended", 1, "cursor", cursor)
    redis.call("PEXPIRE", meta, retention_ms)
    redis.call("UNLINK", text, reasoning, facts, blocks)
    redis.call("XTRIM", log, "MINID", "~", now - retention_ms)
  end
  return { 0, seq, cursor, tonumber(known[4] or 0), known[5] or "" }
end

local answers, first = {}, 3
for k = 2, #KEYS do
  local last = first + 3 * tonumber(string.match(ARGV[first], "%d+$"))
  local ok, answer = pcall(append, KEYS[k], first, last)
  answers[#answers + 1] = ok and answer or { 3, type(answer) == "table" and answer.err or tostring(answer), "", 0, "" }
  first = last + 1
end
if has_written then redis.call("XADD", KEYS[1], "MAXLEN", 1, "*", "s", 0) end
return answers
