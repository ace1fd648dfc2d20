-- Releases a lock or a semaphore by force: ends every lease and wakes the first waiter. The state
-- remains, so the next fence is higher and former holders get the reply -3 (released by force).
--
-- KEYS  1 state   2 leases   3 holders   4 queue   5 beats
-- ARGV  1 linger: ms to keep the state of a free lock
-- Reply the number of holders that lost a live lease
-- Requires: prelude

local time = redis.call('TIME')
local now = $micros(time)

local state = redis.call('GET', KEYS.state)
if not state then return 0 end
local kind, lost = $kind(state), 0
if $ends(state) <= now then return 0 end
if kind == '${EXCLUSIVE}' then
  lost = 1
elseif kind == '${SHARED}' then
  redis.call('ZREMRANGEBYSCORE', KEYS.leases, '-inf', $text(now))
  lost = redis.call('ZCARD', KEYS.leases)
  redis.call('DEL', KEYS.leases, KEYS.holders)
  state = $columns(state)
end
if lost == 0 then return 0 end

redis.call('PEXPIRE', KEYS.state, ARGV.linger) -- before SET: see prelude.lua
local flag = $waiting(state) and '1' or '0'
redis.call('SET', KEYS.state, flag .. '${FORCED}' .. $after_kind(state), 'PX', ARGV.linger)
if flag == '1' then
  $wake_first(KEYS.state, KEYS.queue, KEYS.beats, now)
end
return lost
