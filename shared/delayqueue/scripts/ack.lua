-- Acknowledges an attempt, positively or negatively.
--
-- KEYS  1 due   2 awaiting   3 dead   4 done   5 jobs
-- ARGV  1 mode            "ack" | "nack"
--       2 id
--       3 attempt
--       4 dedup_window    ms
--       5 dead_retention  ms
--       6 error           of a nack
--       7 delay           of a nack, ms, or "" for the job's backoff
--       8 random          for the jitter, 0 to 999999
--       9 channel         pub/sub channel that wakes the dispatcher
--       10 message        to publish on the channel
-- Reply {1, header}: recorded by this call, or by an earlier call whose reply was lost
--       {0, header}: the job does not await an ack of this attempt; header is "" if the job
--       does not exist
-- Requires: prelude

local time = redis.call('TIME')
local now = $floor_ms(time)
local id = ARGV.id
local record = redis.call('HGET', KEYS.jobs, id)
if not record then return {0, ''} end

local attempt, max, due, claims, options, error, content = $parse(record, ${AWAITING_ACK})
if attempt ~= ARGV.attempt then
  local header = $first_line(record)
  if ARGV.mode == 'ack' and $parse(record, ${SUCCEEDED}) == ARGV.attempt then return {1, header} end
  if ARGV.mode == 'nack' then
    local failed, _, _, _, _, reason = $parse(record, [${SCHEDULED}${DEAD}])
    if failed == ARGV.attempt and reason == ARGV.error then return {1, header} end
  end
  return {0, header}
end

redis.call('ZREM', KEYS.awaiting, id)
local state = '${SUCCEEDED}'
if ARGV.mode == 'ack' then
  redis.call('ZADD', KEYS.done, $text(now + ARGV.dedup_window), id)
elseif tonumber(attempt) >= tonumber(max) then
  state, error = '${DEAD}', ARGV.error
  redis.call('ZADD', KEYS.dead, $text(now + ARGV.dead_retention), id)
else
  state, error = '${SCHEDULED}', ARGV.error
  local delay = tonumber(ARGV.delay)
  if not delay then
    $backoff(delay, options, attempt, ARGV.random)
  end
  due = $text(now + delay)
  $schedule(id, now + delay)
end

local header = $header(state, attempt, max, due, claims, options)
redis.call('HSET', KEYS.jobs, id, header .. '\n' .. error .. '\n' .. content)
return {1, header}
