-- Records that an outbox job was sent to SQS or canceled, so that it is not sent from Redis.
--
-- KEYS  1 due   2 awaiting   3 done   4 jobs
-- ARGV  1 id
--       2 dedup_window  ms
--       3 ack_timeout   ms, or "" if the job is finished
--       4 record        new record of the job
--       5 create        "1" to create a job that does not exist in this shard | "0"
-- Reply 1 recorded, or the job is no longer scheduled | 0 the job does not exist in this shard
-- Requires: prelude

local time = redis.call('TIME')
local now = $floor_ms(time)
local id = ARGV.id
local existing = redis.call('HGET', KEYS.jobs, id)
if not existing and ARGV.create ~= '1' then return 0 end
if existing and not $parse(existing, ${SCHEDULED}) then return 1 end

redis.call('ZREM', KEYS.due, id)
if ARGV.ack_timeout == '' then
  redis.call('ZADD', KEYS.done, $text(now + ARGV.dedup_window), id)
else
  redis.call('ZADD', KEYS.awaiting, $text(now + ARGV.ack_timeout), id)
end
redis.call('HSET', KEYS.jobs, id, ARGV.record)
return 1
