-- Claims due jobs under a lease, and starts an attempt of each. If the dispatcher dies,
-- maintain.lua schedules the jobs again when the lease ends.
--
-- KEYS  1 due   2 leased   3 done   4 jobs   5 paused   6 dead
-- ARGV  1 limit           maximum number of jobs to claim
--       2 lease           ms
--       3 dedup_window    ms
--       4 max_lapses      number of consecutive lapsed leases after which a job is dead
--       5 dead_retention  ms
-- Reply {now, next, paused, then id and record of each claimed job}
--       next is the due time of the next job, or the end of the pause, or -1 if there is none
--       paused is 1 if the queue is paused, and otherwise 0
-- Requires: prelude

local time = redis.call('TIME')
local now = $floor_ms(time)

local paused = redis.call('GET', KEYS.paused)
if paused then
  local pause_end = tonumber(paused)
  if pause_end == 0 then return {now, -1, 1} end
  if pause_end > now then return {now, pause_end, 1} end
  redis.call('DEL', KEYS.paused)
end

local reply = {now, -1, 0}
local ids = redis.call('ZRANGEBYSCORE', KEYS.due, '-inf', now, 'LIMIT', 0, tonumber(ARGV.limit))
if #ids > 0 then
  local records = redis.call('HMGET', KEYS.jobs, unpack(ids))
  local lease_end = $text(now + ARGV.lease)
  local leases, writes = {}, {}
  redis.call('ZREM', KEYS.due, unpack(ids))
  for i, id in ipairs(ids) do
    local record = records[i]
    if record then
      local attempt, max, due, claims, options, rest = $split(record, ${ANY})
      local expires = options ~= '' and $option(options, ${EXPIRES_AT})
      local lapses = options ~= '' and $option(options, ${LAPSES})
      if expires and tonumber(expires) <= now then
        record = $join(${EXPIRED}, attempt, max, due, claims, options, rest)
        redis.call('ZADD', KEYS.done, $text(now + ARGV.dedup_window), id)
      elseif lapses and tonumber(lapses) >= tonumber(ARGV.max_lapses) then
        local error = 'claimed ' .. lapses .. ' times in a row, but each lease ended before an outcome was recorded'
        record = $join(${DEAD}, attempt, max, due, claims, options, $with_error(rest, error))
        redis.call('ZADD', KEYS.dead, $text(now + ARGV.dead_retention), id)
      else
        attempt, claims = string.format('%d', attempt + 1), string.format('%d', claims + 1)
        record = $join(${DISPATCHING}, attempt, max, due, claims, options, rest)
        leases[#leases + 1] = lease_end
        leases[#leases + 1] = id
        reply[#reply + 1] = id
        reply[#reply + 1] = record
      end
      writes[#writes + 1] = id
      writes[#writes + 1] = record
    end
  end
  if #leases > 0 then redis.call('ZADD', KEYS.leased, unpack(leases)) end
  if #writes > 0 then redis.call('HSET', KEYS.jobs, unpack(writes)) end
end

local next_due = $first_due()
if next_due then reply[2] = tonumber(next_due) end
return reply
