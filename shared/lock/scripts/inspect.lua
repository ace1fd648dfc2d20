-- Reads a lock or a semaphore; writes nothing.
--
-- KEYS  1 state   2 leases   3 holders   4 queue   5 beats (see acquire.lua)
-- ARGV  1 the most holders to return
-- Reply {kind "X" | "S" | "F", live waiters, holders, then for each holder: fence, acquired µs, ends µs, "<owner>\n<metadata>"}
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local bound = string.format('(%.0f', now)
local waiters = redis.call('ZCOUNT', KEYS[5], bound, '+inf')
local state = redis.call('GET', KEYS[1])
if not state then return {'F', waiters, 0} end
local kind = string.sub(state, 2, 2)
local ends = string.sub(state, 3, 12) + string.sub(state, 13, 28)
if ends <= now then return {'F', waiters, 0} end
if kind == 'X' then
  local label = string.match(state, '^[^\n]+\n[^\n]+\n(.*)$', 61)
  return {'X', waiters, 1, string.sub(state, 29, 44), string.sub(state, 45, 60), string.format('%.0f', ends), label}
end
if kind ~= 'S' then return {'F', waiters, 0} end
local reply = {'S', waiters, redis.call('ZCOUNT', KEYS[2], bound, '+inf')}
local live = redis.call('ZRANGEBYSCORE', KEYS[2], bound, '+inf', 'WITHSCORES', 'LIMIT', 0, tonumber(ARGV[1]))
for i = 1, #live, 2 do
  local record = redis.call('HGET', KEYS[3], live[i])
  reply[#reply + 1] = string.sub(record, 1, 16)
  reply[#reply + 1] = string.sub(record, 17, 32)
  reply[#reply + 1] = live[i + 1]
  reply[#reply + 1] = string.match(record, '^[^\n]+\n(.*)$', 33)
end
return reply
