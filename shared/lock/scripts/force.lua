-- Takes a lock or a semaphore from everybody who holds it, and wakes the first waiter.
--
-- KEYS  1 state   2 leases   3 holders   4 queue (see acquire.lua)
-- ARGV  1 how long the state of a free lock lingers, ms
-- Reply how many live holders lost it
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local state = redis.call('GET', KEYS[1])
if not state then return 0 end
local kind, waiting, fence = string.match(state, '^(.)(.) (%d+)')
local lost = 0
if kind == 'X' then
  if tonumber(string.match(state, '^.. %d+ (%d+)')) > now then lost = 1 end
elseif kind == 'S' then
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now))
  lost = redis.call('ZCARD', KEYS[2])
  redis.call('DEL', KEYS[2], KEYS[3])
end
if lost == 0 then return 0 end
redis.call('SET', KEYS[1], 'D' .. waiting .. ' ' .. fence, 'PX', ARGV[1])
if waiting == '1' then
  local first = redis.call('ZRANGE', KEYS[4], 0, 0)[1]
  if first then redis.call('PUBLISH', KEYS[1], first) end
end
return lost
