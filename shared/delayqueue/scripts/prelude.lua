-- Shared definitions for the delayed-job scripts: job records, due times and backoff. All times are
-- in ms since the epoch.
--
-- A shard has these keys, which share a hash tag. Every job has a record and is in exactly one of
-- the sorted sets:
--   due       scheduled jobs, by their due time
--   leased    jobs that a dispatcher has claimed, by the end of the lease
--   awaiting  jobs that await their ack, by its deadline
--   done      finished jobs, by the end of their dedup window
--   dead      dead jobs, by the end of their retention
--   jobs      hash of the records by id
--   paused    end of the queue's pause; 0 if only a resume ends the pause
--
-- A record is a text of the following lines. The file record.go describes the options.
--   <state> <attempt> <max attempts> <due time> <claims><options>
--   <error>
--   <attributes>
--   <payload>
-- An option is a space, a letter and a value. Scripts never parse the attributes and the payload.
-- Together they are the job's content.

-- The reply of TIME in ms. enqueue.lua, change.lua and redrive.lua compute due times from the time
-- rounded up, so that no job becomes due early. The other scripts round the time down, so that no
-- job is claimed early.
define $floor_ms(time) math.floor((time[1] * 1000000 + time[2]) / 1000)
define $ceil_ms(time) math.ceil((time[1] * 1000000 + time[2]) / 1000)
define $text(ms) string.format('%.0f', ms)

-- States.
define ${SCHEDULED} s
define ${DISPATCHING} g
define ${DISPATCHED} d
define ${AWAITING_ACK} w
define ${SUCCEEDED} k
define ${CANCELED} c
define ${EXPIRED} x
define ${DEAD} z
define ${ANY} %S

-- The attempt, max attempts, due time, claims, options, error and content of a record, or nil if
-- the job is in a different state.
define $parse(record, state) string.match(record, '^${state} (%d+) (%d+) (%d+) (%d+)([^\n]*)\n([^\n]*)\n(.*)$')
define $record(state, attempt, max, due, claims, options, error, content)
  (state .. ' ' .. attempt .. ' ' .. max .. ' ' .. due .. ' ' .. claims .. options .. '\n' .. error .. '\n' .. content)

-- The same parts with fewer captures, for scripts that process many jobs per call. The part due
-- includes the spaces around it, and the part rest is everything after the options.
define $split(record, state) string.match(record, '^${state} (%d+) (%d+)( %d+ )(%d+)([^\n]*)(.*)$')
define $join(state, attempt, max, due, claims, options, rest)
  ('${state} ' .. attempt .. ' ' .. max .. due .. claims .. options .. rest)
define $with_error(rest, error) '\n' .. error .. string.match(rest, '^\n[^\n]*(\n.*)$')

-- A record's first line.
define $header(state, attempt, max, due, claims, options)
  (state .. ' ' .. attempt .. ' ' .. max .. ' ' .. due .. ' ' .. claims .. options)
define $first_line(text) string.match(text, '^[^\n]*')

-- The letters of the options.
define ${ACK_TIMEOUT} a
define ${EXPIRES_AT} x
define ${DISPATCHED_AT} t
define ${LAPSES} u
define ${REDRIVES} r
define $option(options, letter) string.match(options, ' ${letter}(%d+)')
define $without(options, letters) (string.gsub(options, ' [${letters}]%d+', ''))

-- Decodes a due time and assigns it to the variable due. The text given is "d<ms>" for a delay from
-- now, or "r<ms>" for a time. A time in the past becomes now.
define $resolve(due, given, now)
  due = string.sub(given, 2) + 0
  if string.sub(given, 1, 1) == 'd' then
    due = now + due
  elseif due < now then
    due = now
  end

-- The earliest due time of the shard's scheduled jobs, or nil if there are none.
define $first_due() redis.call('ZRANGE', KEYS.due, 0, 0, 'WITHSCORES')[2]

-- Schedules a job. If its due time is now the earliest in the shard, wakes the dispatcher.
define $schedule(id, due)
  do
    local first = $first_due()
    redis.call('ZADD', KEYS.due, $text(due), id)
    if not first or due < tonumber(first) then redis.call('PUBLISH', ARGV.channel, ARGV.message) end
  end

-- Assigns the backoff in ms after a failed attempt to the variable delay. The backoff is
-- initial * (factor/1000)^(attempt-1), but at most cap. If the job has jitter, this value is
-- multiplied by random/1000000. The argument random is an integer from 0 to 999999.
define $backoff(delay, options, attempt, random)
  do
    local initial, cap, factor, jitter = string.match(options, ' b(%d+),(%d+),(%d+),(%d)')
    delay = math.min(tonumber(cap), initial * (factor / 1000) ^ (attempt - 1))
    if jitter == '1' then delay = delay * random / 1000000 end
    delay = math.ceil(delay)
  end
