-- Remove generations of a deleted conversation, and leave what keeps their drivers from writing any of it again.
--
-- KEYS  1 log, then for each generation: meta, text, reasoning, facts, blocks
-- ARGV  1 attempt above all others  2 longest life of an unfinished generation, ms  3 channel, then each UUID
-- Returns the number of generations
redis.call("DEL", KEYS[1])
for i = 2, #KEYS, 5 do
  for k = i, i + 4 do redis.call("DEL", KEYS[k]) end
  redis.call("HSET", KEYS[i], "attempt", ARGV[1], "seq", 0, "state", "cancelled", "ended", 1)
  redis.call("PEXPIRE", KEYS[i], ARGV[2])
  redis.call("PUBLISH", ARGV[3], ARGV[4 + (i - 2) / 5])
end
return (#KEYS - 1) / 5
