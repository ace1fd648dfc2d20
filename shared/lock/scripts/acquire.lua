-- Acquires a lock or a permit, or joins the queue for it.
--
-- KEYS  1 state   2 leases   3 holders   4 queue   5 beats
--       With the state key alone: acquires in exclusive mode if there are no waiters and no shared
--       holders; otherwise changes nothing and replies 0.
-- ARGV  1 ttl: µs in 10 columns
--       2 record: "<token>\n<call>\n<owner>\n<metadata>"
--       3 keep: ms until the state expires, ttl included
--       4 permits: maximum number of shared holders; 0 for exclusive mode
--       5 beat: heartbeat in µs if the call joins the queue; otherwise 0
--       6 least: minimum fence (16 digits) or ""; makes all nodes of a quorum issue the same fence
--       Without the last three: exclusive mode, no queue, no minimum fence.
-- Reply a time in µs: acquired; the time is both the fence and the start of the lease
--       0: not decided; call again with all keys
--       {1, fence, acquired µs, end of the lease µs, reacquired 0|1, in use}
--       {0, µs until the lock may be free, owner of a holder, reason}; the reasons are
--         0 held   1 reserved for the first waiter   2 the token holds the lock in the other mode
-- Requires: prelude

local time = redis.call('TIME')
local stamp = #time[2] == 6 and time[1] .. time[2] or string.format('%s%06d', time[1], time[2])
local state = redis.call('GET', KEYS.state)

-- Fast path: an uncontended exclusive acquire touches only the state.
if not ARGV.permits and (not state or $flags(state) == '0${FREE}' and $fence(state) < stamp) then
  redis.call('SET', KEYS.state, '0${EXCLUSIVE}' .. ARGV.ttl .. stamp .. stamp .. stamp .. ARGV.record, 'PX', ARGV.keep)
  return tonumber(stamp)
end

local now, ttl = tonumber(stamp), tonumber(ARGV.ttl)
local permits, beat = tonumber(ARGV.permits or 0), tonumber(ARGV.beat or 0)
local token, call = string.match(ARGV.record, '^([^\n]+)\n([^\n]+)')
local kind, waiting, ends, last = '${FREE}', false, now, 0
if state then
  kind, waiting, last, ends = $kind(state), $waiting(state), tonumber($fence(state)), $ends(state)
  if ends <= now then kind = '${FREE}' end
end

-- Writes the state with a lease that starts now.
local function write(flag, letter, length, fence, acquired, record)
  local lease = string.format('%10.0f%s${FENCE_FORMAT}${FENCE_FORMAT}', length, stamp, fence, acquired)
  redis.call('SET', KEYS.state, flag .. letter .. lease .. record,
    'PX', $text(math.ceil(length / 1000) + ARGV.keep - ttl / 1000))
end

-- Returns a refusal. A call with a heartbeat first joins the queue or keeps its place in it.
local function refuse(remaining, owner, reason)
  if beat > 0 and reason < 2 then
    if redis.call('ZSCORE', KEYS.queue, call) == false then
      local tail = redis.call('ZRANGE', KEYS.queue, -1, -1, 'WITHSCORES')[2]
      redis.call('ZADD', KEYS.queue, $text(math.max(now, (tail or 0) + 1)), call)
    end
    redis.call('ZADD', KEYS.beats, $text(now + beat), call)
    redis.call('PEXPIRE', KEYS.queue, 60000)
    redis.call('PEXPIRE', KEYS.beats, 60000)
    if state then redis.call('SETRANGE', KEYS.state, ${AT_WAITING}, '1') end
  end
  return {0, remaining, owner, reason}
end

-- If a token acquires again, its record is unchanged except for the call, which becomes "-". So a
-- failed call never releases a lease that another call with the same token acquired.
if kind == '${EXCLUSIVE}' then
  local record = $record(state)
  local owner = string.match(record, '^[^\n]+\n[^\n]+\n([^\n]*)')
  if not ($owned(state, token)) then return refuse(ends - now, owner, 0) end
  if permits > 0 then return refuse(ends - now, owner, 2) end
  local acquired, label = tonumber($acquired(state)), string.match(record, '^[^\n]+\n[^\n]+(\n.*)$')
  write(waiting and '1' or '0', '${EXCLUSIVE}', ttl, last, acquired, token .. '\n-' .. label)
  return {1, last, acquired, now + ttl, 1, 1}
end
if #KEYS == 1 and (waiting or kind == '${SHARED}') then return 0 end

local mine = false
if kind == '${SHARED}' then
  local ended = redis.call('ZRANGEBYSCORE', KEYS.leases, '-inf', stamp, 'LIMIT', 0, 1000)
  if #ended > 0 then
    redis.call('ZREM', KEYS.leases, unpack(ended))
    redis.call('HDEL', KEYS.holders, unpack(ended))
  end
  local used = redis.call('ZCARD', KEYS.leases)
  mine = redis.call('ZSCORE', KEYS.leases, token)
  if permits == 0 or not mine and used >= permits then
    local first = redis.call('ZRANGE', KEYS.leases, 0, 0, 'WITHSCORES')
    local record = redis.call('HGET', KEYS.holders, mine and token or first[1]) or ''
    local owner = $holder_owner(record) or ''
    if permits > 0 then return refuse(first[2] - now, owner, 0) end
    return refuse(ends - now, owner, mine and 2 or 0)
  end
elseif permits > 0 then
  redis.call('DEL', KEYS.leases, KEYS.holders) -- removes ended leases
end

-- Returns the time at which the first waiter's heartbeat expires, or nil if no live waiter is ahead
-- of this call. It removes waiters whose heartbeat has expired.
local function ahead()
  for _ = 1, 1000 do
    local first = redis.call('ZRANGE', KEYS.queue, 0, 0)[1]
    if not first or first == call then return nil end
    local beat_ends = redis.call('ZSCORE', KEYS.beats, first)
    if beat_ends and tonumber(beat_ends) > now then return tonumber(beat_ends) end
    redis.call('ZREM', KEYS.queue, first)
    redis.call('ZREM', KEYS.beats, first)
  end
  return now + 1
end

local flag = '0'
if waiting then
  local turn = not mine and ahead()
  if turn then return refuse(turn - now, '', 1) end
  redis.call('ZREM', KEYS.queue, call)
  redis.call('ZREM', KEYS.beats, call)
  flag = $text(redis.call('EXISTS', KEYS.queue))
end

local fence = math.max(last + 1, now, tonumber(ARGV.least) or 0)
if permits == 0 then
  write(flag, '${EXCLUSIVE}', ttl, fence, now, ARGV.record)
  return {1, fence, now, now + ttl, 0, 1}
end

local acquired, label = now, string.sub(ARGV.record, #token + 2)
if mine then
  local record = redis.call('HGET', KEYS.holders, token)
  fence, acquired = tonumber($holder_fence(record)), tonumber($holder_acquired(record))
  label = '-' .. $holder_unnamed(record)
else
  last = fence
end
redis.call('HSET', KEYS.holders, token, string.format('${FENCE_FORMAT}${FENCE_FORMAT}', fence, acquired) .. label)
redis.call('ZADD', KEYS.leases, $text(now + ttl), token)
local longest = redis.call('ZRANGE', KEYS.leases, -1, -1, 'WITHSCORES')[2] - now
write(flag, '${SHARED}', longest, last, 0, '')
local keep = redis.call('PTTL', KEYS.state)
redis.call('PEXPIRE', KEYS.leases, keep)
redis.call('PEXPIRE', KEYS.holders, keep)

local used = redis.call('ZCARD', KEYS.leases)
if flag == '1' and not mine and used < permits then -- the next waiter may share the lock
  redis.call('PUBLISH', KEYS.state, redis.call('ZRANGE', KEYS.queue, 0, 0)[1])
end
return {1, fence, acquired, now + ttl, mine and 1 or 0, used}
