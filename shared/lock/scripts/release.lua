-- Releases the lock or permit of a token and wakes the first waiter. If ARGV has the ID of a failed
-- call, the script removes the call from the queue, and releases the lock or permit only if this
-- call acquired it.
--
-- KEYS  1 state   2 leases   3 holders   4 queue   5 beats
--       With the state key alone: releases an exclusive lock without waiters; otherwise changes
--       nothing and replies 0.
-- ARGV  1 token
--       2 linger: ms to keep the state of a free lock
--       3 call: ID of a failed call, only with all keys; absent for a release
-- Reply µs that the token held the lock, at least 1
--       0 not decided; call again with all keys
--       -1 expired   -2 held by another token   -3 released by force   -4 released already
-- Requires: prelude

local token, call = ARGV.token, ARGV.call

-- Marks the lock as free. If Redis is at maxmemory, it refuses SETRANGE as the script's first write
-- (see prelude.lua). Then set_free calls PEXPIRE and repeats SETRANGE.
local function set_free()
  local done = redis.pcall('SETRANGE', KEYS.state, ${AT_KIND}, '${FREE}')
  if type(done) == 'table' then
    redis.call('PEXPIRE', KEYS.state, ARGV.linger)
    redis.call('SETRANGE', KEYS.state, ${AT_KIND}, '${FREE}')
  end
end

local gave_up = call ~= nil
if gave_up then
  redis.call('ZREM', KEYS.queue, call)
  redis.call('ZREM', KEYS.beats, call)
end

local state = redis.call('GET', KEYS.state)
if not state then return -1 end
local time = redis.call('TIME')
local now = $micros(time)
local ends = $ends(state)

-- Fast path: an exclusive lock without waiters.
if not gave_up and now < ends and $flags(state) == '0${EXCLUSIVE}' and $owned(state, token) then
  set_free()
  if ends - now > ARGV.linger * 1000 then redis.call('PEXPIRE', KEYS.state, ARGV.linger) end
  return math.max(1, now - $acquired(state))
end

local waiting, kind = $waiting(state), $kind(state)
local proof = token .. '\n' .. (gave_up and call .. '\n' or '')
local mine = $owned_by(state, proof)

-- Wakes the first waiter, if there is one, and returns the reply.
local function wake(reply)
  if waiting then
    $wake_first(KEYS.state, KEYS.queue, KEYS.beats, now)
  end
  return reply
end

local function refuse(reason) return gave_up and wake(reason) or reason end

if kind == '${FREE}' then return refuse(mine and -4 or -1) end
if kind == '${FORCED}' then return refuse((mine or $unheld(state)) and -3 or -1) end
if ends <= now then return refuse(-1) end
if kind == '${EXCLUSIVE}' and not mine then return refuse(-2) end
if #KEYS == 1 and (waiting or kind == '${SHARED}') then return 0 end

local acquired = $acquired(state)
if kind == '${SHARED}' then
  local lease, record = redis.call('ZSCORE', KEYS.leases, token), redis.call('HGET', KEYS.holders, token)
  if not lease or not record or tonumber(lease) <= now then return refuse(mine and -4 or -1) end
  if gave_up and not ($holder_called(record, call)) then return refuse(-1) end

  acquired = $holder_acquired(record)
  redis.call('ZREM', KEYS.leases, token)
  redis.call('HDEL', KEYS.holders, token)
  redis.call('SETRANGE', KEYS.state, ${AT_RECORD}, token .. '\n') -- so that a repeated release succeeds
  local longest = tonumber(redis.call('ZRANGE', KEYS.leases, -1, -1, 'WITHSCORES')[2] or 0)
  if longest > now then -- other holders remain
    redis.call('SETRANGE', KEYS.state, ${AT_LEASE}, string.format('${LEASE_FORMAT}', longest - now, now))
    return wake(math.max(1, now - acquired))
  end
end

set_free()
if ends - now > ARGV.linger * 1000 then redis.call('PEXPIRE', KEYS.state, ARGV.linger) end
return wake(math.max(1, now - acquired))
