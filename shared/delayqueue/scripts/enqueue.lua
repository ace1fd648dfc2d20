-- Takes in jobs of one shard; each for itself, idempotent by id.
--
-- KEYS  1 due  2 done  3 jobs        (see record.go for a job's record: "<header>\n<error>\n<extra>\n<payload>")
-- ARGV  1 channel to wake the dispatcher   2 what to publish
--       then for each job: id, "d<ms>" to run after a delay or "r<ms>" to run at an instant, "<max attempts>",
--       " <claims><header's options>\n<error>\n<extra>\n<payload>": what comes after the due time in the record
-- Reply for each job: its run_at ms: taken in   "1<header>": known with this content   "2<header>": known with another content
local call, sub, match, format, ARGV = redis.call, string.sub, string.match, string.format, ARGV
local time = redis.call('TIME')
local now = math.ceil((time[1] * 1000000 + time[2]) / 1000)
local ids, fresh, writes, scores, reply, soonest = {}, {}, {}, {}, {}, nil
for a = 3, #ARGV, 4 do ids[#ids + 1] = ARGV[a] end
local records = call('HMGET', KEYS[3], unpack(ids))
for i = 1, #ids do
  local id, when, rest = ids[i], ARGV[4 * i], ARGV[4 * i + 2]
  local known = records[i]
  if known then
    local over = call('ZSCORE', KEYS[2], id)
    if over and tonumber(over) <= now then -- its dedup window has ended: forgotten, only not pruned yet
      call('ZREM', KEYS[2], id)
      known = false
    end
  end
  known = fresh[id] or known
  if known then
    local header, content = match(known, '^([^\n]*)\n[^\n]*\n(.*)$')
    reply[i] = (content == match(rest, '^[^\n]*\n[^\n]*\n(.*)$') and '1' or '2') .. header
  else
    local run_at = tonumber(sub(when, 2))
    if sub(when, 1, 1) == 'd' then run_at = now + run_at elseif run_at < now then run_at = now end
    local at, n = format('%d', run_at), #scores
    local record = 's 0 ' .. ARGV[4 * i + 1] .. ' ' .. at .. rest
    fresh[id] = record
    writes[n + 1], scores[n + 1] = id, at
    writes[n + 2], scores[n + 2] = record, id
    if not soonest or run_at < soonest then soonest = run_at end
    reply[i] = run_at
  end
end
if soonest then
  -- A dispatcher looks at the shard each second anyhow: only what is due before that may have to wake it.
  local head = soonest < now + 1500 and call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]
  call('HSET', KEYS[3], unpack(writes))
  call('ZADD', KEYS[1], unpack(scores))
  if soonest < now + 1500 and (not head or soonest < tonumber(head)) then call('PUBLISH', ARGV[1], ARGV[2]) end
end
return reply
