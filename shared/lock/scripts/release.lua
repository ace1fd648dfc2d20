-- Gives back what a token holds, and wakes the first waiter. Asked again by the same token, it succeeds again.
--
-- KEYS  1 state   2 leases   3 holders   4 queue (see acquire.lua)
-- ARGV  1 token   2 how long the state of a free lock lingers, ms
-- Reply {1, µs held}   {0, 0 expired | 1 held by other | 2 released by force}
local token = ARGV[1]
local state = redis.call('GET', KEYS[1])
if not state then return {0, 0} end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local kind, waiting = string.sub(state, 1, 1), string.sub(state, 2, 2)

local function wake()
  if waiting == '1' then
    local first = redis.call('ZRANGE', KEYS[4], 0, 0)[1]
    if first then redis.call('PUBLISH', KEYS[1], first) end
  end
end

if kind == 'X' then
  local f, e, a, holder = string.match(state, '^.. (%d+) (%d+) (%d+) (%S+)')
  if tonumber(e) <= now then return {0, 0} end
  if holder ~= token then return {0, 1} end
  redis.call('SET', KEYS[1], 'F' .. waiting .. ' ' .. f .. ' ' .. token, 'PX', ARGV[2])
  wake()
  return {1, now - a}
end

if kind == 'S' then
  local mine = redis.call('ZSCORE', KEYS[2], token)
  if not mine or tonumber(mine) <= now then return {0, 0} end
  local a = string.match(redis.call('HGET', KEYS[3], token), '^%d+ (%d+)')
  redis.call('ZREM', KEYS[2], token)
  redis.call('HDEL', KEYS[3], token)
  wake()
  return {1, now - a}
end

if string.match(state, '^F. %d+ (%S+)$') == token then return {1, 0} end
return {0, kind == 'D' and 2 or 0}
