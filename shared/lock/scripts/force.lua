-- Takes a lock or a semaphore from everybody who holds it, and wakes the first waiter. Its state stays, so that the next fence is higher and
-- those who lost it are told that it was taken by force.
--
-- KEYS  1 state   2 leases   3 holders   4 queue   5 beats (see acquire.lua)
-- ARGV  1 how long the state of a free lock is kept, ms
-- Reply how many live holders lost it
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local state = redis.call('GET', KEYS[1])
if not state then return 0 end
local kind, lost = string.sub(state, 2, 2), 0
if string.sub(state, 3, 12) + string.sub(state, 13, 28) <= now then return 0 end
if kind == 'X' then
  lost = 1
elseif kind == 'S' then
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now))
  lost = redis.call('ZCARD', KEYS[2])
  redis.call('DEL', KEYS[2], KEYS[3])
  state = string.sub(state, 1, 60)
end
if lost == 0 then return 0 end
redis.call('PEXPIRE', KEYS[1], ARGV[1]) -- after a first write a full Redis takes the next one, too
redis.call('SET', KEYS[1], string.sub(state, 1, 1) .. 'D' .. string.sub(state, 3), 'PX', ARGV[1])
if string.sub(state, 1, 1) == '1' then
  for _, id in ipairs(redis.call('ZRANGE', KEYS[4], 0, 9)) do
    if tonumber(redis.call('ZSCORE', KEYS[5], id) or 0) > now then
      redis.call('PUBLISH', KEYS[1], id)
      break
    end
  end
end
return lost
