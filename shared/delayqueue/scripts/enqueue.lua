-- Enqueues jobs of one shard, each independently of the others. Does nothing for a job whose id
-- already exists.
--
-- KEYS  1 due   2 done   3 jobs
-- ARGV  1 channel   pub/sub channel that wakes the dispatcher
--       2 message   to publish on the channel
--       then for each job: id, due time as "d<ms>" or "r<ms>" (see prelude.lua), max attempts, and
--       the part of the record that follows the due time
-- Reply for each job: its due time if it was enqueued; "1<header>" if the id exists with the same
--       content; "2<header>" if the id exists with different content. <header> is the header of the
--       existing record (see prelude.lua)
-- Requires: prelude

-- The dispatcher polls each shard about every second, so only a job that is due within this number
-- of ms must wake it.
define ${POLLED_AFTER} 1500

-- The content of a record, or of the part of a record that follows the due time.
define $content(record) match(record, '^[^\n]*\n[^\n]*\n(.*)$')
define $header_and_content(record) match(record, '^([^\n]*)\n[^\n]*\n(.*)$')

local call, match, format, ARGV = redis.call, string.match, string.format, ARGV
local time = redis.call('TIME')
local now = $ceil_ms(time)

local ids = {}
for a = 3, #ARGV, 4 do ids[#ids + 1] = ARGV[a] end
local records = call('HMGET', KEYS.jobs, unpack(ids))

local enqueued, writes, scores, reply, soonest = {}, {}, {}, {}, nil
for i = 1, #ids do
  local id, given, rest = ids[i], ARGV[4 * i], ARGV[4 * i + 2]
  local existing = records[i]
  if existing then
    local window_end = call('ZSCORE', KEYS.done, id)
    if window_end and tonumber(window_end) <= now then -- a finished job that is not pruned yet
      call('ZREM', KEYS.done, id)
      existing = false
    end
  end
  existing = enqueued[id] or existing

  if existing then
    local header, content = $header_and_content(existing)
    reply[i] = (content == $content(rest) and '1' or '2') .. header
  else
    local due
    $resolve(due, given, now)
    local score, n = format('%d', due), #scores
    local record = '${SCHEDULED} 0 ' .. ARGV[4 * i + 1] .. ' ' .. score .. rest
    enqueued[id] = record
    writes[n + 1], scores[n + 1] = id, score
    writes[n + 2], scores[n + 2] = record, id
    if not soonest or due < soonest then soonest = due end
    reply[i] = due
  end
end

if soonest then
  local first = soonest < now + ${POLLED_AFTER} and $first_due()
  call('HSET', KEYS.jobs, unpack(writes))
  call('ZADD', KEYS.due, unpack(scores))
  if soonest < now + ${POLLED_AFTER} and (not first or soonest < tonumber(first)) then
    call('PUBLISH', ARGV.channel, ARGV.message)
  end
end
return reply
