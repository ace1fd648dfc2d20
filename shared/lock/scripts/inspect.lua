-- Reads a lock or a semaphore; writes nothing.
--
-- KEYS  1 state   2 leases   3 holders   4 queue   5 beats (see acquire.lua)
-- ARGV  1 the most holders to return
-- Reply {kind "X" | "S" | "F", live waiters, holders, then for each holder: fence, acquired µs, expires µs, "<owner>\n<metadata>"}
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local bound = string.format('(%.0f', now)
local waiters = redis.call('ZCOUNT', KEYS[5], bound, '+inf')
local state = redis.call('GET', KEYS[1])
local kind = state and string.sub(state, 1, 1)
if kind == 'X' then
  local f, e, a, _, label = string.match(state, '^.. (%d+) (%d+) (%d+) (%S+) (.*)$')
  if tonumber(e) > now then return {'X', waiters, 1, f, a, e, label} end
end
if kind == 'S' then
  local reply = {'S', waiters, redis.call('ZCOUNT', KEYS[2], bound, '+inf')}
  local live = redis.call('ZRANGEBYSCORE', KEYS[2], bound, '+inf', 'WITHSCORES', 'LIMIT', 0, tonumber(ARGV[1]))
  for i = 1, #live, 2 do
    local f, a, label = string.match(redis.call('HGET', KEYS[3], live[i]), '^(%d+) (%d+) (.*)$')
    reply[#reply + 1] = f
    reply[#reply + 1] = a
    reply[#reply + 1] = live[i + 1]
    reply[#reply + 1] = label
  end
  if #live > 0 then return reply end
end
return {'F', waiters, 0}
