-- Cancels a job that is still scheduled, or changes its due time or payload.
--
-- KEYS  1 due   2 done   3 jobs
-- ARGV  1 mode          "cancel" | "change"
--       2 id
--       3 dedup_window  ms
--       4 due           the new due time as "d<ms>" or "r<ms>" (see prelude.lua), or "" to keep it
--       5 payload       the new payload, if has_payload is "1"
--       6 has_payload   "1" | "0"
--       7 channel       pub/sub channel that wakes the dispatcher
--       8 message       to publish on the channel
-- Reply {1, header}: changed, or canceled by an earlier call whose reply was lost
--       {0, header}: the job is not scheduled; header is "" if the job does not exist
-- Requires: prelude

local time = redis.call('TIME')
local now = $ceil_ms(time)
local id = ARGV.id
local record = redis.call('HGET', KEYS.jobs, id)
if not record then return {0, ''} end

local attempt, max, due, claims, options, error, content = $parse(record, ${SCHEDULED})
if not attempt then
  local canceled = ARGV.mode == 'cancel' and $parse(record, ${CANCELED})
  return {canceled and 1 or 0, $first_line(record)}
end

local state = '${SCHEDULED}'
if ARGV.mode == 'cancel' then
  state = '${CANCELED}'
  redis.call('ZREM', KEYS.due, id)
  redis.call('ZADD', KEYS.done, $text(now + ARGV.dedup_window), id)
else
  if ARGV.due ~= '' then
    local new_due
    $resolve(new_due, ARGV.due, now)
    due = $text(new_due)
    $schedule(id, new_due)
  end
  if ARGV.has_payload == '1' then content = $first_line(content) .. '\n' .. ARGV.payload end
end

local header = $header(state, attempt, max, due, claims, options)
redis.call('HSET', KEYS.jobs, id, header .. '\n' .. error .. '\n' .. content)
return {1, header}
