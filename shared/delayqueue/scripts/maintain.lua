-- Reschedules jobs whose lease has lapsed, ends attempts whose ack has timed out, and prunes
-- finished and dead jobs. Each step processes at most limit jobs.
--
-- KEYS  1 due   2 leased   3 awaiting   4 dead   5 done   6 jobs
-- ARGV  1 limit
--       2 dead_retention  ms
--       3 random          for the jitter, 0 to 999999
-- Reply {number of lapsed leases, number of ack timeouts, number of jobs that became dead by an ack
--       timeout, number of pruned jobs, 1 if more jobs may remain | 0}
-- Requires: prelude

local time = redis.call('TIME')
local now = $floor_ms(time)
local limit = tonumber(ARGV.limit)

-- A lapsed lease does not count as an attempt: if a consumer received the message nevertheless, the
-- next message has the same attempt number. The job keeps its due time, so that the oldest job is
-- claimed first.
local lapsed = redis.call('ZRANGEBYSCORE', KEYS.leased, '-inf', now, 'LIMIT', 0, limit)
for _, id in ipairs(lapsed) do
  redis.call('ZREM', KEYS.leased, id)
  local record = redis.call('HGET', KEYS.jobs, id)
  local attempt, max, due, claims, options, error, content
  if record then attempt, max, due, claims, options, error, content = $parse(record, ${DISPATCHING}) end
  if attempt then
    local lapses = string.format('%d', ($option(options, ${LAPSES}) or 0) + 1)
    options = $without(options, ${LAPSES}) .. ' ${LAPSES}' .. lapses
    attempt = string.format('%d', attempt - 1)
    record = $record('${SCHEDULED}', attempt, max, due, claims, options, error, content)
    redis.call('HSET', KEYS.jobs, id, record)
    redis.call('ZADD', KEYS.due, due, id)
  end
end

local late, died = redis.call('ZRANGEBYSCORE', KEYS.awaiting, '-inf', now, 'LIMIT', 0, limit), 0
for _, id in ipairs(late) do
  redis.call('ZREM', KEYS.awaiting, id)
  local record = redis.call('HGET', KEYS.jobs, id)
  local attempt, max, _, claims, options, content
  if record then attempt, max, _, claims, options, _, content = $parse(record, ${AWAITING_ACK}) end
  if attempt then
    local state, due = '${DEAD}', now
    if tonumber(attempt) >= tonumber(max) then
      died = died + 1
      redis.call('ZADD', KEYS.dead, $text(now + ARGV.dead_retention), id)
    else
      local delay
      $backoff(delay, options, attempt, ARGV.random)
      state, due = '${SCHEDULED}', now + delay
      redis.call('ZADD', KEYS.due, $text(due), id)
    end
    local error = 'no ack within the timeout'
    record = $record(state, attempt, max, $text(due), claims, options, error, content)
    redis.call('HSET', KEYS.jobs, id, record)
  end
end

local pruned = 0
for _, set in ipairs({KEYS.dead, KEYS.done}) do
  local expired = redis.call('ZRANGEBYSCORE', set, '-inf', now, 'LIMIT', 0, limit)
  if #expired > 0 then
    redis.call('ZREM', set, unpack(expired))
    redis.call('HDEL', KEYS.jobs, unpack(expired))
    pruned = pruned + #expired
  end
end

local more = #lapsed == limit or #late == limit or pruned >= limit
return {#lapsed, #late, died, pruned, more and 1 or 0}
