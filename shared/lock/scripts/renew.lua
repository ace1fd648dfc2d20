-- Extends the lease of a token that holds a lock or a permit. It never takes a lock that has expired.
--
-- KEYS  1 state   2 leases   3 holders (see acquire.lua)
-- ARGV  1 token   2 ttl µs   3 how long state lingers after the lease, ms
-- Reply {1, fence, expires µs}
--       {0, 0 expired | 1 held by other | 2 released by force}
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local token, ttl = ARGV[1], tonumber(ARGV[2])
local state = redis.call('GET', KEYS[1])
if not state then return {0, 0} end
local kind = string.sub(state, 1, 1)

if kind == 'X' then
  local f, e, a, holder, label = string.match(state, '^.. (%d+) (%d+) (%d+) (%S+) (.*)$')
  if tonumber(e) <= now then return {0, 0} end
  if holder ~= token then return {0, 1} end
  redis.call('SET', KEYS[1], string.format('X%s %s %.0f %s %s %s', string.sub(state, 2, 2), f, now + ttl, a, token, label),
    'PX', string.format('%.0f', ttl / 1000 + ARGV[3]))
  return {1, tonumber(f), now + ttl}
end

if kind == 'S' then
  local mine = redis.call('ZSCORE', KEYS[2], token)
  if not mine then return {0, 0} end
  if tonumber(mine) <= now then return {0, 0} end
  redis.call('ZADD', KEYS[2], string.format('%.0f', now + ttl), token)
  local longest = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2]
  local keep = string.format('%.0f', (longest - now) / 1000 + ARGV[3])
  for i = 1, 3 do redis.call('PEXPIRE', KEYS[i], keep) end
  return {1, tonumber(string.match(redis.call('HGET', KEYS[3], token), '^%d+')), now + ttl}
end

return {0, kind == 'D' and 2 or 0}
