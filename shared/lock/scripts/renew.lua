-- Extends the lease of a token that holds a lock or a permit. It never takes one that has expired.
--
-- KEYS  1 state   2 leases   3 holders (see acquire.lua)
-- ARGV  1 token   2 ttl µs   3 how long the state is kept after the lease, ms
-- Reply {fence, ends µs}   or -1 expired   -2 held by another   -3 released by force
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local token, ttl = ARGV[1], tonumber(ARGV[2])
local state = redis.call('GET', KEYS[1])
if not state then return -1 end
local kind = string.sub(state, 2, 2)
local mine = string.sub(state, 61, 61 + #token) == token .. '\n'
if kind == 'D' then return (mine or #state == 60) and -3 or -1 end
if kind == 'F' or string.sub(state, 3, 12) + string.sub(state, 13, 28) <= now then return -1 end

local fence, longest, keys = string.sub(state, 29, 44), now + ttl, 1
if kind == 'X' then
  if not mine then return -2 end
else
  local lease, record = redis.call('ZSCORE', KEYS[2], token), redis.call('HGET', KEYS[3], token)
  if not lease or not record or tonumber(lease) <= now then return -1 end
  fence = string.sub(record, 1, 16)
  redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.ceil(ttl / 1000) + ARGV[3])) -- see below
  redis.call('ZADD', KEYS[2], string.format('%.0f', now + ttl), token)
  longest, keys = tonumber(redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2]), 3
end
-- A full Redis refuses a first write that might take memory, but no later one: so PEXPIRE comes first, and who holds a lock can keep it.
local keep = string.format('%.0f', math.ceil((longest - now) / 1000) + ARGV[3])
for i = 1, keys do redis.call('PEXPIRE', KEYS[i], keep) end
redis.call('SETRANGE', KEYS[1], 2, string.format('%10.0f%016.0f', longest - now, now))
return {tonumber(fence), now + ttl}
