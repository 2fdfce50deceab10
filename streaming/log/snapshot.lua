-- Read generations and the log's newest cursor in one step.
--
-- KEYS  1 log, then for each generation: meta, text, reasoning, facts, blocks
-- Returns {newest id or "", now in ms, generation, …}; a generation is {} when unknown, ended, or when a part of
--       it was lost that its driver has not written again yet (append.lua says how that is known), else
--       {attempt, seq, newest block index or -1, text, reasoning, {fact, …}, {index, view, …}, cancel_at,
--       cancel_by}; cancel_at is 0 without a request
local info = redis.pcall("XINFO", "STREAM", KEYS[1])
local newest = ""
if not info.err then
  for i = 1, #info, 2 do
    if info[i] == "last-generated-id" then newest = info[i + 1] end
  end
end
local time = redis.call("TIME")
local answer = { newest, time[1] * 1000 + math.floor(time[2] / 1000) }
for i = 2, #KEYS, 5 do
  local meta = redis.call("HMGET", KEYS[i], "attempt", "seq", "newest", "cancel_at", "cancel_by", "ended", "text",
    "reasoning", "facts", "blocks")
  local text, reasoning = redis.call("GET", KEYS[i + 1]) or "", redis.call("GET", KEYS[i + 2]) or ""
  local facts, blocks = redis.call("LRANGE", KEYS[i + 3], 0, -1), redis.call("HGETALL", KEYS[i + 4])
  local is_whole = not meta[7] or (tonumber(meta[7]) == #text and tonumber(meta[8]) == #reasoning
    and tonumber(meta[9]) == #facts and tonumber(meta[10]) == #blocks / 2)
  if (meta[2] or meta[4]) and is_whole and not meta[6] then
    answer[#answer + 1] = {
      tonumber(meta[1] or 0), tonumber(meta[2] or 0), tonumber(meta[3] or -1),
      text, reasoning, facts, blocks, tonumber(meta[4] or 0), meta[5] or "",
    }
  else
    answer[#answer + 1] = {}
  end
end
return answer
