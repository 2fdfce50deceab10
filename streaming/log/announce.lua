-- Append a notice of a conversation, unless it was deleted meanwhile.
--
-- KEYS  1 log  2 gone  3 wake
-- ARGV  1 the notice's name in the log  2 the notice  3 retention ms
-- Returns its cursor, or "" when the conversation was deleted
if redis.call("EXISTS", KEYS[2]) == 1 then return "" end
local cursor = redis.call("XADD", KEYS[1], "*", ARGV[1], ARGV[2], "s", 0)
redis.call("PEXPIRE", KEYS[1], ARGV[3])
redis.call("XADD", KEYS[3], "MAXLEN", 1, "*", "s", 0)
return cursor
