-- Takes a lock or a semaphore's permit, or queues for it.
--
-- KEYS  1 state   string: "<kind><waiters> <fence>[ <expires µs> <acquired µs> <token> <owner>\n<metadata>]"
--                 kind: X held exclusively, S held by those in 2 and 3, F released, D released by force; waiters: 1 when some may wait
--       2 leases  zset of shared holders' tokens by expiry (µs)
--       3 holders hash of shared holders' tokens to "<fence> <acquired µs> <owner>\n<metadata>"
--       4 queue   zset of waiters by arrival (µs)
--       5 beats   zset of waiters by the end of their heartbeat (µs)
-- ARGV  1 "x" exclusive or "s" shared   2 token   3 ttl µs   4 "<owner>\n<metadata>"   5 capacity (shared)
--       6 waiter's id, or "" not to wait   7 heartbeat µs   8 how long state lingers after the lease, ms
-- Reply {1, fence, acquired µs, expires µs, reacquired 0|1, in use}
--       {0, µs until it may be free, owner label of a holder, now µs}; an owner of "" is a lock that is kept for its first waiter
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local mode, token, ttl, waiter = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[6]
local state = redis.call('GET', KEYS[1])
local kind, last, waiting = 'F', 0, false
local expires, acquired, holder, label
if state then
  kind, waiting = string.sub(state, 1, 1), string.sub(state, 2, 2) == '1'
  if kind == 'X' then
    local f, e, a
    f, e, a, holder, label = string.match(state, '^.. (%d+) (%d+) (%d+) (%S+) (.*)$')
    last, expires, acquired = tonumber(f), tonumber(e), tonumber(a)
    if expires <= now then kind = 'F' end
  else
    last = tonumber(string.match(state, '^.. (%d+)'))
  end
end

local function fence()
  if last >= now then return last + 1 end
  return now
end

local function write_exclusive(w, number, from)
  redis.call('SET', KEYS[1], string.format('X%d %.0f %.0f %.0f %s %s', w, number, now + ttl, from, token, ARGV[4]),
    'PX', string.format('%.0f', ttl / 1000 + ARGV[8]))
end

-- Whether a live waiter other than this one is first in the queue; those whose heartbeat ended are passed over.
local function behind()
  for _ = 1, 1000 do
    local first = redis.call('ZRANGE', KEYS[4], 0, 0)[1]
    if not first then
      waiting = false
      return false
    end
    if first == waiter then return false end
    local beat = redis.call('ZSCORE', KEYS[5], first)
    if beat and tonumber(beat) > now then return true end
    redis.call('ZREM', KEYS[4], first)
    redis.call('ZREM', KEYS[5], first)
  end
  return true
end

-- Takes this waiter out of the queue and returns 1 when others are left.
local function leave_queue()
  if not waiting then return 0 end
  if waiter ~= '' then
    redis.call('ZREM', KEYS[4], waiter)
    redis.call('ZREM', KEYS[5], waiter)
  end
  return redis.call('EXISTS', KEYS[4])
end

local function enqueue()
  if waiter == '' then return end
  redis.call('ZADD', KEYS[4], 'NX', string.format('%.0f', now), waiter)
  redis.call('ZADD', KEYS[5], string.format('%.0f', now + ARGV[7]), waiter)
  redis.call('PEXPIRE', KEYS[4], 60000)
  redis.call('PEXPIRE', KEYS[5], 60000)
  if state then redis.call('SETRANGE', KEYS[1], 1, '1') end
end

if kind == 'X' then
  if holder == token and mode == 'x' then
    local w = waiting and 1 or 0
    redis.call('SET', KEYS[1], string.format('X%d %.0f %.0f %.0f %s %s', w, last, now + ttl, acquired, token, label),
      'PX', string.format('%.0f', ttl / 1000 + ARGV[8]))
    return {1, last, acquired, now + ttl, 1, 1}
  end
  enqueue()
  return {0, expires - now, string.match(label, '^[^\n]*'), now}
end

if kind == 'S' then
  local dead = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now), 'LIMIT', 0, 1000)
  if #dead > 0 then
    redis.call('ZREM', KEYS[2], unpack(dead))
    redis.call('HDEL', KEYS[3], unpack(dead))
  end
  local mine = mode == 's' and redis.call('ZSCORE', KEYS[2], token)
  local used = redis.call('ZCARD', KEYS[2])
  if used == 0 then
    redis.call('DEL', KEYS[3])
    kind = 'F'
  elseif not mine and (mode == 'x' or used >= tonumber(ARGV[5])) then
    local first = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
    local frees = mode == 'x' and redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2] or first[2]
    local record = redis.call('HGET', KEYS[3], first[1]) or ''
    enqueue()
    return {0, tonumber(frees) - now, string.match(record, '^%d+ %d+ ([^\n]*)') or '', now}
  end
end

local mine = kind == 'S' and redis.call('ZSCORE', KEYS[2], token)
if waiting and not mine and behind() then
  enqueue()
  return {0, tonumber(ARGV[7]), '', now}
end

if mode == 'x' then
  local number = fence()
  write_exclusive(leave_queue(), number, now)
  return {1, number, now, now + ttl, 0, 1}
end

local number, from, again = fence(), now, 0
local record = mine and redis.call('HGET', KEYS[3], token)
if record then
  local f, a = string.match(record, '^(%d+) (%d+)')
  number, from, again = tonumber(f), tonumber(a), 1
else
  redis.call('HSET', KEYS[3], token, string.format('%.0f %.0f %s', number, now, ARGV[4]))
  last = number
end
redis.call('ZADD', KEYS[2], string.format('%.0f', now + ttl), token)
local longest = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2]
local keep = string.format('%.0f', (longest - now) / 1000 + ARGV[8])
local others = leave_queue()
redis.call('SET', KEYS[1], string.format('S%d %.0f', others, last), 'PX', keep)
redis.call('PEXPIRE', KEYS[2], keep)
redis.call('PEXPIRE', KEYS[3], keep)
local used = redis.call('ZCARD', KEYS[2])
if others == 1 and again == 0 then -- the next waiter may share it too
  local first = redis.call('ZRANGE', KEYS[4], 0, 0)[1]
  if first then redis.call('PUBLISH', KEYS[1], first) end
end
return {1, number, from, now + ttl, again, used}
