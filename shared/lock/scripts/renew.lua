-- Extends the lease of a token that holds a lock or a permit. It never revives an expired lease.
--
-- KEYS  1 state   2 leases   3 holders
-- ARGV  1 token   2 ttl: µs   3 linger: ms to keep the state after the lease
-- Reply {fence, end of the lease µs}
--       -1 expired   -2 held by another token   -3 released by force
-- Requires: prelude

local time = redis.call('TIME')
local now = $micros(time)
local token, ttl = ARGV.token, tonumber(ARGV.ttl)

local state = redis.call('GET', KEYS.state)
if not state then return -1 end
local kind, mine = $kind(state), $owned(state, token)
if kind == '${FORCED}' then return (mine or $unheld(state)) and -3 or -1 end
if kind == '${FREE}' or $ends(state) <= now then return -1 end

local fence, longest, keys = $fence(state), now + ttl, 1
if kind == '${EXCLUSIVE}' then
  if not mine then return -2 end
else
  local lease, record = redis.call('ZSCORE', KEYS.leases, token), redis.call('HGET', KEYS.holders, token)
  if not lease or not record or tonumber(lease) <= now then return -1 end
  fence = $holder_fence(record)
  redis.call('PEXPIRE', KEYS.state, $text(math.ceil(ttl / 1000) + ARGV.linger)) -- before ZADD: see prelude.lua
  redis.call('ZADD', KEYS.leases, $text(now + ttl), token)
  longest, keys = tonumber(redis.call('ZRANGE', KEYS.leases, -1, -1, 'WITHSCORES')[2]), 3
end

-- PEXPIRE comes first, so that a holder can renew if Redis is at maxmemory (see prelude.lua).
local keep = $text(math.ceil((longest - now) / 1000) + ARGV.linger)
for i = 1, keys do redis.call('PEXPIRE', KEYS[i], keep) end
redis.call('SETRANGE', KEYS.state, ${AT_LEASE}, string.format('${LEASE_FORMAT}', longest - now, now))
return {tonumber(fence), now + ttl}
