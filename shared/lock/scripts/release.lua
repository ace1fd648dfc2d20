-- Gives back what a token holds, and wakes the first waiter. For a call that gave up it leaves the queue, and gives back only what that call got.
--
-- KEYS  1 state   2 leases   3 holders   4 queue   5 beats (see acquire.lua)
--       With the first key alone it decides the exclusive mode while nobody waits, and else changes nothing.
-- ARGV  1 token   2 how long the state of a free lock is kept, ms   3 the call that gave up, which needs all keys, or nothing
-- Reply µs held, at least 1   0: give all keys
--       -1 expired   -2 held by another   -3 released by force   -4 released already
local token, call = ARGV[1], ARGV[3]

-- Marks the lock as free. A full Redis refuses a first write that might take memory, but no later one; these bytes are there already.
local function set_free()
  local done = redis.pcall('SETRANGE', KEYS[1], 1, 'F')
  if type(done) == 'table' then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
    redis.call('SETRANGE', KEYS[1], 1, 'F')
  end
end

local gave_up = call ~= nil
if gave_up then
  redis.call('ZREM', KEYS[4], call)
  redis.call('ZREM', KEYS[5], call)
end
local state = redis.call('GET', KEYS[1])
if not state then return -1 end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local ends = string.sub(state, 3, 12) + string.sub(state, 13, 28)
if not gave_up and now < ends and string.sub(state, 1, 2) == '0X' and string.sub(state, 61, 61 + #token) == token .. '\n' then
  set_free()
  if ends - now > ARGV[2] * 1000 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
  return math.max(1, now - string.sub(state, 45, 60))
end

local waiting, kind = string.sub(state, 1, 1) == '1', string.sub(state, 2, 2)
local proof = token .. '\n' .. (gave_up and call .. '\n' or '')
local mine = string.sub(state, 61, 60 + #proof) == proof

-- Wakes the first in the queue that is alive, and passes an answer on.
local function wake(reply)
  if not waiting then return reply end
  for _, id in ipairs(redis.call('ZRANGE', KEYS[4], 0, 9)) do
    if tonumber(redis.call('ZSCORE', KEYS[5], id) or 0) > now then
      redis.call('PUBLISH', KEYS[1], id)
      return reply
    end
  end
  return reply
end

local function refuse(why) return gave_up and wake(why) or why end

if kind == 'F' then return refuse(mine and -4 or -1) end
if kind == 'D' then return refuse((mine or #state == 60) and -3 or -1) end
if ends <= now then return refuse(-1) end
if kind == 'X' and not mine then return refuse(-2) end
if #KEYS == 1 and (waiting or kind == 'S') then return 0 end

local acquired = string.sub(state, 45, 60)
if kind == 'S' then
  local lease, record = redis.call('ZSCORE', KEYS[2], token), redis.call('HGET', KEYS[3], token)
  if not lease or not record or tonumber(lease) <= now then return refuse(mine and -4 or -1) end
  if gave_up and string.sub(record, 33, 33 + #call) ~= call .. '\n' then return refuse(-1) end
  acquired = string.sub(record, 17, 32)
  redis.call('ZREM', KEYS[2], token)
  redis.call('HDEL', KEYS[3], token)
  redis.call('SETRANGE', KEYS[1], 60, token .. '\n') -- so that the same release can be asked for again
  local longest = tonumber(redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2] or 0)
  if longest > now then -- others share it still
    redis.call('SETRANGE', KEYS[1], 2, string.format('%10.0f%016.0f', longest - now, now))
    return wake(math.max(1, now - acquired))
  end
end
set_free()
if ends - now > ARGV[2] * 1000 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return wake(math.max(1, now - acquired))
