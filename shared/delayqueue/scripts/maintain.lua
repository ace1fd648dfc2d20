-- Takes back lapsed leases, ends lapsed ack timeouts, and prunes finished and dead jobs whose time is over; at most so many of each.
--
-- KEYS  1 due  2 leased  3 awaiting  4 dead  5 done  6 jobs
-- ARGV  1 the most of each   2 retention of the dead ms   3 a random number of 0 to 999999, for the jitter
-- Reply {leases taken back, acks missed, of these now dead, pruned, 1 when there may be more}
local time = redis.call('TIME')
local now = math.floor((time[1] * 1000000 + time[2]) / 1000)
local most = tonumber(ARGV[1])

local lapsed = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, most)
for _, id in ipairs(lapsed) do
  redis.call('ZREM', KEYS[2], id)
  local record = redis.call('HGET', KEYS[6], id)
  local attempt, middle, options, rest
  if record then attempt, middle, options, rest = string.match(record, '^g (%d+)( %d+ %d+ %d+)([^\n]*)(\n.*)$') end
  if attempt then -- the same attempt again: whoever got it already gets it under the same number
    local unanswered = string.format('%d', (string.match(options, ' u(%d+)') or 0) + 1)
    options = string.gsub(options, ' u%d+', '') .. ' u' .. unanswered
    redis.call('HSET', KEYS[6], id, 's ' .. string.format('%d', attempt - 1) .. middle .. options .. rest)
    redis.call('ZADD', KEYS[1], string.match(middle, '^ %d+ (%d+)'), id) -- at its own due time: the oldest first
  end
end

local late, died = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now, 'LIMIT', 0, most), 0
for _, id in ipairs(late) do
  redis.call('ZREM', KEYS[3], id)
  local record = redis.call('HGET', KEYS[6], id)
  local attempt, max, claims, options, rest
  if record then attempt, max, claims, options, rest = string.match(record, '^w (%d+) (%d+) %d+ (%d+)([^\n]*)\n[^\n]*(\n.*)$') end
  if attempt then
    local state, at = 'z', now
    if tonumber(attempt) >= tonumber(max) then
      died = died + 1
      redis.call('ZADD', KEYS[4], string.format('%.0f', now + ARGV[2]), id)
    else
      state = 's'
      local first, cap, factor, jitter = string.match(options, ' b(%d+),(%d+),(%d+),(%d)')
      local delay = math.min(tonumber(cap), first * (factor / 1000) ^ (attempt - 1))
      if jitter == '1' then delay = delay * ARGV[3] / 1000000 end
      at = now + math.ceil(delay)
      redis.call('ZADD', KEYS[1], string.format('%.0f', at), id)
    end
    redis.call('HSET', KEYS[6], id, state .. ' ' .. attempt .. ' ' .. max .. ' ' .. string.format('%.0f', at) .. ' ' .. claims .. options ..
      '\nno ack within the timeout' .. rest)
  end
end

local pruned = 0
for k = 4, 5 do
  local over = redis.call('ZRANGEBYSCORE', KEYS[k], '-inf', now, 'LIMIT', 0, most)
  if #over > 0 then
    redis.call('ZREM', KEYS[k], unpack(over))
    redis.call('HDEL', KEYS[6], unpack(over))
    pruned = pruned + #over
  end
end
local more = (#lapsed == most or #late == most or pruned >= most) and 1 or 0
return {#lapsed, #late, died, pruned, more}
