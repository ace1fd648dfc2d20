-- Records that SQS accepted claimed jobs. A job with one attempt is then dispatched; any other job
-- awaits its ack.
--
-- KEYS  1 leased   2 awaiting   3 done   4 jobs
-- ARGV  1 dedup_window  ms
--       2 ack_timeout   ms, for jobs without an ack timeout of their own
--       3 jobs          number of jobs
--       then for each job: id, number of its claim
-- Reply for each job: 1 recorded | 0 this claim is no longer the newest
-- Requires: prelude

local call, format = redis.call, string.format
local jobs = tonumber(ARGV.jobs)
if jobs == 0 then return {} end
local time = redis.call('TIME')
local now = $floor_ms(time)
local dispatched_at, window_end, ids = format(' ${DISPATCHED_AT}%d', now), format('%d', now + ARGV.dedup_window), {}
for i = 1, jobs do ids[i] = ARGV[2 + 2 * i] end

-- Collect the writes first, so that each key needs only one command.
local records = call('HMGET', KEYS.jobs, unpack(ids))
local reply, accepted, awaiting, done, writes = {}, {}, {}, {}, {}
for i, id in ipairs(ids) do
  local attempt, max, due, claims, options, rest
  if records[i] then attempt, max, due, claims, options, rest = $split(records[i], ${DISPATCHING}) end
  if claims and claims == ARGV[3 + 2 * i] then
    if options == '' then
      options = dispatched_at
    else
      options = $without(options, ${LAPSES}${DISPATCHED_AT}) .. dispatched_at
    end
    local record
    if max ~= '1' then
      record = $join(${AWAITING_ACK}, attempt, max, due, claims, options, rest)
      awaiting[#awaiting + 1] = format('%d', now + ($option(options, ${ACK_TIMEOUT}) or ARGV.ack_timeout))
      awaiting[#awaiting + 1] = id
    else
      record = $join(${DISPATCHED}, attempt, max, due, claims, options, rest)
      done[#done + 1] = window_end
      done[#done + 1] = id
    end
    accepted[#accepted + 1] = id
    writes[#writes + 1] = id
    writes[#writes + 1] = record
    reply[i] = 1
  else
    reply[i] = 0
  end
end

if #accepted > 0 then
  call('ZREM', KEYS.leased, unpack(accepted))
  if #awaiting > 0 then call('ZADD', KEYS.awaiting, unpack(awaiting)) end
  if #done > 0 then call('ZADD', KEYS.done, unpack(done)) end
  call('HSET', KEYS.jobs, unpack(writes))
end
return reply
