-- Requeues claimed jobs that SQS did not accept, without counting the attempt. A job that SQS will
-- never accept becomes dead.
--
-- KEYS  1 due   2 leased   3 dead   4 jobs
-- ARGV  1 dead_retention  ms
--       2 jobs            number of jobs
--       then for each job: id, claim number, delay in ms or "dead", error
-- Reply for each job: 1 requeued or dead | 0 if the job was claimed again or is gone
-- Requires: prelude

local time = redis.call('TIME')
local now = $floor_ms(time)
local reply = {}
for i = 1, tonumber(ARGV.jobs) do
  local a = 4 * i - 1
  local id, claim, delay, error = ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3]
  local record = redis.call('HGET', KEYS.jobs, id)
  local attempt, max, due, claims, options, _, content
  if record then attempt, max, due, claims, options, _, content = $parse(record, ${DISPATCHING}) end
  reply[i] = 0
  if claims == claim then
    redis.call('ZREM', KEYS.leased, id)
    local state = '${DEAD}'
    options = $without(options, ${LAPSES})
    if delay == 'dead' then
      redis.call('ZADD', KEYS.dead, $text(now + ARGV.dead_retention), id)
    else
      state, attempt = '${SCHEDULED}', string.format('%d', attempt - 1)
      redis.call('ZADD', KEYS.due, $text(now + delay), id)
    end
    redis.call('HSET', KEYS.jobs, id, $record(state, attempt, max, due, claims, options, error, content))
    reply[i] = 1
  end
end
return reply
