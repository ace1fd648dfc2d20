-- Schedules dead jobs again: due now, and with the attempt reset to 0.
--
-- KEYS  1 due   2 dead   3 jobs
-- ARGV  1 channel  pub/sub channel that wakes the dispatcher
--       2 message  to publish on the channel
--       3 limit    maximum number of jobs to move, if no ids follow
--       then the ids of the jobs to move
-- Reply number of moved jobs
-- Requires: prelude

local time = redis.call('TIME')
local now = $ceil_ms(time)

local ids = {}
for i = 4, #ARGV do
  if redis.call('ZSCORE', KEYS.dead, ARGV[i]) then ids[#ids + 1] = ARGV[i] end
end
if #ARGV == 3 then ids = redis.call('ZRANGE', KEYS.dead, 0, tonumber(ARGV.limit) - 1) end

local moved = 0
for _, id in ipairs(ids) do
  redis.call('ZREM', KEYS.dead, id)
  local record = redis.call('HGET', KEYS.jobs, id)
  local max, claims, options, error, content, _
  if record then _, max, _, claims, options, error, content = $parse(record, ${DEAD}) end
  if max then
    -- Remove the expiry, because the caller wants the job to be sent. Keep the number of claims,
    -- because it fences late outcomes of earlier claims.
    local redrives = string.format('%d', ($option(options, ${REDRIVES}) or 0) + 1)
    options = $without(options, ${LAPSES}${REDRIVES}${EXPIRES_AT})
    options = options .. ' ${REDRIVES}' .. redrives
    local due = $text(now)
    redis.call('HSET', KEYS.jobs, id, $record('${SCHEDULED}', 0, max, due, claims, options, error, content))
    redis.call('ZADD', KEYS.due, due, id)
    moved = moved + 1
  end
end
if moved > 0 then redis.call('PUBLISH', ARGV.channel, ARGV.message) end
return moved
