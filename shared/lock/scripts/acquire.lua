-- Takes a lock or a semaphore's permit, or queues for it.
--
-- KEYS  1 state   string of fixed columns, and the record of who holds it exclusively, or did so last:
--                   1      waiting    1 when somebody may be in the queue, else 0
--                   2      kind       X held exclusively, S shared, F released, D released by force
--                   3-12   ttl µs     the lease ends ttl after since; that of S is the longest of its leases
--                   13-28  since µs   when the lease was granted or renewed
--                   29-44  fence      the last one given out
--                   45-60  acquired   µs, of X
--                   61-    record     as in ARGV 2, of X
--       2 leases  zset of shared holders' tokens by the end of their lease, µs
--       3 holders hash of shared holders' tokens to fence (16), acquired µs (16), "<call>\n<owner>\n<metadata>"
--       4 queue   zset of waiters' calls by arrival, µs
--       5 beats   zset of waiters' calls by the end of their heartbeat, µs
--       With the first key alone it decides the exclusive mode while nobody waits, and else changes nothing.
-- ARGV  1 ttl µs in 10 columns   2 "<token>\n<call>\n<owner>\n<metadata>"   3 ms to keep the state, ttl included
--       4 how many may share it, 0 for the exclusive mode   5 heartbeat µs of a caller that will wait, else 0
--       6 the least fence, 16 digits, or "": so that the nodes of a quorum give out the same one
--       Without the last three: exclusive, without waiting, any fence.
-- Reply instant µs: taken; it is both the fence and the instant   0: give all keys
--       {1, fence, acquired µs, ends µs, reacquired 0|1, in use}
--       {0, µs until it may be free, owner of a holder, 0 held | 1 kept for its first waiter | 2 the token holds it in the other mode}
local time = redis.call('TIME')
local stamp = #time[2] == 6 and time[1] .. time[2] or string.format('%s%06d', time[1], time[2])
local state = redis.call('GET', KEYS[1])
if not ARGV[4] and (not state or string.sub(state, 1, 2) == '0F' and string.sub(state, 29, 44) < stamp) then
  redis.call('SET', KEYS[1], '0X' .. ARGV[1] .. stamp .. stamp .. stamp .. ARGV[2], 'PX', ARGV[3])
  return tonumber(stamp)
end

local now, ttl, permits, beat = tonumber(stamp), tonumber(ARGV[1]), tonumber(ARGV[4] or 0), tonumber(ARGV[5] or 0)
local token, call = string.match(ARGV[2], '^([^\n]+)\n([^\n]+)')
local kind, waiting, ends, last = 'F', false, now, 0
if state then
  kind, waiting, last = string.sub(state, 2, 2), string.sub(state, 1, 1) == '1', tonumber(string.sub(state, 29, 44))
  ends = string.sub(state, 3, 12) + string.sub(state, 13, 28)
  if ends <= now then kind = 'F' end
end

local function text(n) return string.format('%.0f', n) end

local function write(flag, letter, length, fence, acquired, record)
  redis.call('SET', KEYS[1], flag .. letter .. string.format('%10.0f%s%016.0f%016.0f', length, stamp, fence, acquired) .. record,
    'PX', text(math.ceil(length / 1000) + ARGV[3] - ttl / 1000))
end

local function refuse(remaining, owner, why)
  if beat > 0 and why < 2 then
    if redis.call('ZSCORE', KEYS[4], call) == false then
      local tail = redis.call('ZRANGE', KEYS[4], -1, -1, 'WITHSCORES')[2]
      redis.call('ZADD', KEYS[4], text(math.max(now, (tail or 0) + 1)), call)
    end
    redis.call('ZADD', KEYS[5], text(now + beat), call)
    redis.call('PEXPIRE', KEYS[4], 60000)
    redis.call('PEXPIRE', KEYS[5], 60000)
    if state then redis.call('SETRANGE', KEYS[1], 0, '1') end
  end
  return {0, remaining, owner, why}
end

-- A token that asks again keeps its record but for the call, which is nobody's then: no call that gave up takes away what another one got.
if kind == 'X' then
  local record = string.sub(state, 61)
  local owner = string.match(record, '^[^\n]+\n[^\n]+\n([^\n]*)')
  if string.sub(record, 1, #token + 1) ~= token .. '\n' then return refuse(ends - now, owner, 0) end
  if permits > 0 then return refuse(ends - now, owner, 2) end
  local acquired = tonumber(string.sub(state, 45, 60))
  write(string.sub(state, 1, 1), 'X', ttl, last, acquired, token .. '\n-' .. string.match(record, '^[^\n]+\n[^\n]+(\n.*)$'))
  return {1, last, acquired, now + ttl, 1, 1}
end
if #KEYS == 1 and (waiting or kind == 'S') then return 0 end

local mine = false
if kind == 'S' then
  local ended = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', stamp, 'LIMIT', 0, 1000)
  if #ended > 0 then
    redis.call('ZREM', KEYS[2], unpack(ended))
    redis.call('HDEL', KEYS[3], unpack(ended))
  end
  local used = redis.call('ZCARD', KEYS[2])
  mine = redis.call('ZSCORE', KEYS[2], token)
  if permits == 0 or not mine and used >= permits then
    local first = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
    local owner = string.match(redis.call('HGET', KEYS[3], mine and token or first[1]) or '', '^[^\n]+\n([^\n]*)') or ''
    if permits > 0 then return refuse(first[2] - now, owner, 0) end
    return refuse(ends - now, owner, mine and 2 or 0)
  end
elseif permits > 0 then
  redis.call('DEL', KEYS[2], KEYS[3]) -- what is left of leases that have ended
end

-- The end of the heartbeat of the first in the queue, when that is another; those who died are passed over.
local function ahead()
  for _ = 1, 1000 do
    local first = redis.call('ZRANGE', KEYS[4], 0, 0)[1]
    if not first or first == call then return nil end
    local until_ = redis.call('ZSCORE', KEYS[5], first)
    if until_ and tonumber(until_) > now then return tonumber(until_) end
    redis.call('ZREM', KEYS[4], first)
    redis.call('ZREM', KEYS[5], first)
  end
  return now + 1
end

local flag = '0'
if waiting then
  local turn = not mine and ahead()
  if turn then return refuse(turn - now, '', 1) end
  redis.call('ZREM', KEYS[4], call)
  redis.call('ZREM', KEYS[5], call)
  flag = text(redis.call('EXISTS', KEYS[4]))
end

local fence = math.max(last + 1, now, tonumber(ARGV[6]) or 0)
if permits == 0 then
  write(flag, 'X', ttl, fence, now, ARGV[2])
  return {1, fence, now, now + ttl, 0, 1}
end

local acquired, label = now, string.sub(ARGV[2], #token + 2)
if mine then
  local record = redis.call('HGET', KEYS[3], token)
  fence, acquired = tonumber(string.sub(record, 1, 16)), tonumber(string.sub(record, 17, 32))
  label = '-' .. string.match(record, '^[^\n]+(\n.*)$', 33)
else
  last = fence
end
redis.call('HSET', KEYS[3], token, string.format('%016.0f%016.0f', fence, acquired) .. label)
redis.call('ZADD', KEYS[2], text(now + ttl), token)
local longest = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2] - now
write(flag, 'S', longest, last, 0, '')
local keep = redis.call('PTTL', KEYS[1])
redis.call('PEXPIRE', KEYS[2], keep)
redis.call('PEXPIRE', KEYS[3], keep)
local used = redis.call('ZCARD', KEYS[2])
if flag == '1' and not mine and used < permits then -- the next in the queue may share it too
  redis.call('PUBLISH', KEYS[1], redis.call('ZRANGE', KEYS[4], 0, 0)[1])
end
return {1, fence, acquired, now + ttl, mine and 1 or 0, used}
