-- Reads a lock or a semaphore. It writes nothing.
--
-- KEYS  1 state   2 leases   3 holders   4 queue   5 beats
-- ARGV  1 most: maximum number of holders to return
-- Reply {kind (X, S or F), number of live waiters, number of live holders; for each holder: fence,
--       acquired µs, end of the lease µs, "<owner>\n<metadata>"}
-- Requires: prelude

local time = redis.call('TIME')
local now = $micros(time)
local after_now = string.format('(%.0f', now)
local waiters = redis.call('ZCOUNT', KEYS.beats, after_now, '+inf')

local state = redis.call('GET', KEYS.state)
if not state then return {'${FREE}', waiters, 0} end
local kind, ends = $kind(state), $ends(state)
if ends <= now then return {'${FREE}', waiters, 0} end

if kind == '${EXCLUSIVE}' then
  local public = $public(state)
  return {'${EXCLUSIVE}', waiters, 1, $fence(state), $acquired(state), $text(ends), public}
end
if kind ~= '${SHARED}' then return {'${FREE}', waiters, 0} end

local reply = {'${SHARED}', waiters, redis.call('ZCOUNT', KEYS.leases, after_now, '+inf')}
local live = redis.call('ZRANGEBYSCORE', KEYS.leases, after_now, '+inf', 'WITHSCORES', 'LIMIT', 0, tonumber(ARGV.most))
for i = 1, #live, 2 do
  local record = redis.call('HGET', KEYS.holders, live[i])
  reply[#reply + 1] = $holder_fence(record)
  reply[#reply + 1] = $holder_acquired(record)
  reply[#reply + 1] = live[i + 1]
  reply[#reply + 1] = $holder_public(record)
end
return reply
