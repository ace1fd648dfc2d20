-- Takes a waiter that gave up out of the queue, gives back what its token may have got meanwhile, and wakes the next waiter.
--
-- KEYS  1 state   2 leases   3 holders   4 queue   5 beats (see acquire.lua)
-- ARGV  1 waiter   2 token   3 release what the token acquired at or after this instant, µs   4 how long a free lock's state lingers, ms
-- Reply 1 when the token had got it, else 0
local state = redis.call('GET', KEYS[1])
local had = 0
redis.call('ZREM', KEYS[4], ARGV[1])
redis.call('ZREM', KEYS[5], ARGV[1])
if state then
  local kind, waiting, fence = string.match(state, '^(.)(.) (%d+)')
  if kind == 'X' then
    local a, holder = string.match(state, '^.. %d+ %d+ (%d+) (%S+)')
    if holder == ARGV[2] and tonumber(a) >= tonumber(ARGV[3]) then
      redis.call('SET', KEYS[1], 'F' .. waiting .. ' ' .. fence .. ' ' .. ARGV[2], 'PX', ARGV[4])
      had = 1
    end
  elseif kind == 'S' then
    local record = redis.call('HGET', KEYS[3], ARGV[2])
    if record and tonumber(string.match(record, '^%d+ (%d+)')) >= tonumber(ARGV[3]) then
      redis.call('ZREM', KEYS[2], ARGV[2])
      redis.call('HDEL', KEYS[3], ARGV[2])
      had = 1
    end
  end
end
local first = redis.call('ZRANGE', KEYS[4], 0, 0)[1]
if first then redis.call('PUBLISH', KEYS[1], first) end
return had
