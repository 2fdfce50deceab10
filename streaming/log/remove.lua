-- Remove generations of a deleted conversation, and leave what keeps their drivers, and notices that are under way,
-- from writing any of it again.
--
-- KEYS  1 log  2 gone, then for each generation: meta, text, reasoning, facts, blocks
-- ARGV  1 attempt above all others  2 longest life of an unfinished generation, ms  3 retention, ms  4 channel,
--       then each UUID
-- Returns the number of generations
redis.call("DEL", KEYS[1])
redis.call("SET", KEYS[2], 1, "PX", ARGV[3])
for i = 3, #KEYS, 5 do
  for k = i, i + 4 do redis.call("DEL", KEYS[k]) end
  redis.call("HSET", KEYS[i], "attempt", ARGV[1], "seq", 0, "state", "cancelled", "ended", 1)
  redis.call("PEXPIRE", KEYS[i], ARGV[2])
  redis.call("PUBLISH", ARGV[4], ARGV[5 + (i - 3) / 5])
end
return (#KEYS - 2) / 5
