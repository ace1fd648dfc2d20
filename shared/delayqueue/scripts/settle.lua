-- A consumer's ack or nack of an attempt.
--
-- KEYS  1 due  2 awaiting  3 dead  4 done  5 jobs
-- ARGV  1 "ack" | "nack"   2 id   3 attempt   4 dedup window ms   5 retention of the dead ms   6 error   7 delay ms, or "" for the backoff
--       8 a random number of 0 to 999999, for the jitter   9 channel   10 what to publish
-- Reply {1, header}   {0, header, as "" when there is no such job}: the job is not awaiting that attempt's ack
local time = redis.call('TIME')
local now = math.floor((time[1] * 1000000 + time[2]) / 1000)
local id = ARGV[2]
local record = redis.call('HGET', KEYS[5], id)
if not record then return {0, ''} end
local header = string.match(record, '^[^\n]*')
local attempt, max, at, claims, options, old, rest = string.match(record, '^w (%d+) (%d+) (%d+) (%d+)([^\n]*)\n([^\n]*)(\n.*)$')
if attempt ~= ARGV[3] then
  local done = string.match(header, '^k (%d+)')
  if ARGV[1] == 'ack' and done == ARGV[3] then return {1, header} end -- the answer to this ack was lost
  local failed, why = string.match(record, '^[sz] (%d+)[^\n]*\n([^\n]*)')
  if ARGV[1] == 'nack' and failed == ARGV[3] and why == ARGV[6] then return {1, header} end -- likewise
  return {0, header}
end
redis.call('ZREM', KEYS[2], id)
local state, why = 'k', old
if ARGV[1] == 'ack' then
  redis.call('ZADD', KEYS[4], string.format('%.0f', now + ARGV[4]), id)
elseif tonumber(attempt) >= tonumber(max) then
  state, why = 'z', ARGV[6]
  redis.call('ZADD', KEYS[3], string.format('%.0f', now + ARGV[5]), id)
else
  state, why = 's', ARGV[6]
  local delay = tonumber(ARGV[7])
  if not delay then
    local first, most, factor, jitter = string.match(options, ' b(%d+),(%d+),(%d+),(%d)')
    delay = math.min(tonumber(most), first * (factor / 1000) ^ (attempt - 1))
    if jitter == '1' then delay = delay * ARGV[8] / 1000000 end -- full jitter
    delay = math.ceil(delay)
  end
  at = string.format('%.0f', now + delay)
  local head = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]
  redis.call('ZADD', KEYS[1], at, id)
  if not head or now + delay < tonumber(head) then redis.call('PUBLISH', ARGV[9], ARGV[10]) end
end
header = state .. ' ' .. attempt .. ' ' .. max .. ' ' .. at .. ' ' .. claims .. options
redis.call('HSET', KEYS[5], id, header .. '\n' .. why .. rest)
return {1, header}
