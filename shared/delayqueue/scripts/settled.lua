-- Notes that a job was sent to SQS from the outbox while Redis was away, so that it is not sent again under its id.
--
-- KEYS  1 due  2 awaiting  3 done  4 jobs
-- ARGV  1 id   2 dedup window ms   3 ack timeout ms, or "" when it needs no ack   4 record to keep: dispatched, or awaiting its ack
--       5 "1" to note it also when the job is not known here
-- Reply 1   0 the job is not known here, and nothing was noted
local time = redis.call('TIME')
local now = math.floor((time[1] * 1000000 + time[2]) / 1000)
local id = ARGV[1]
local record = redis.call('HGET', KEYS[4], id)
if not record and ARGV[5] ~= '1' then return 0 end
if record and not string.match(record, '^s ') then return 1 end
redis.call('ZREM', KEYS[1], id)
if ARGV[3] == '' then
  redis.call('ZADD', KEYS[3], string.format('%.0f', now + ARGV[2]), id)
else
  redis.call('ZADD', KEYS[2], string.format('%.0f', now + ARGV[3]), id)
end
redis.call('HSET', KEYS[4], id, ARGV[4])
return 1
