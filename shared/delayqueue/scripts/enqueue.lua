-- Takes in jobs of one shard; each for itself, idempotent by id.
--
-- KEYS  1 due  2 done  3 jobs        (see record.go for a job's record: "<header>\n<error>\n<extra>\n<payload>")
-- ARGV  1 channel to wake the dispatcher   2 what to publish   3 number of jobs
--       then for each job: id, "d<ms>" to run after a delay or "r<ms>" to run at an instant, "<max attempts>", header's options, "<extra>\n<payload>"
-- Reply for each job: 0 taken in | 1 known with this content | 2 known with another content; its run_at ms; its header
local time = redis.call('TIME')
local now = math.ceil((time[1] * 1000000 + time[2]) / 1000)
local count = tonumber(ARGV[3])
local ids, fresh, writes, scores, soonest, reply = {}, {}, {}, {}, nil, {}
for i = 1, count do ids[i] = ARGV[5 * i - 1] end
local records = redis.call('HMGET', KEYS[3], unpack(ids))
for i = 1, count do
  local a = 5 * i - 1
  local id, when, content = ids[i], ARGV[a + 1], ARGV[a + 4]
  local known = fresh[id] or records[i]
  if known and not fresh[id] then
    local over = redis.call('ZSCORE', KEYS[2], id)
    if over and tonumber(over) <= now then -- its dedup window has ended: forgotten, only not pruned yet
      redis.call('ZREM', KEYS[2], id)
      known = false
    end
  end
  if known then
    local header, rest = string.match(known, '^([^\n]*)\n[^\n]*\n(.*)$')
    reply[#reply + 1] = rest == content and 1 or 2
    reply[#reply + 1] = tonumber(string.match(header, '^%S %d+ %d+ (%d+)'))
    reply[#reply + 1] = header
  else
    local run_at = tonumber(string.sub(when, 2))
    if string.sub(when, 1, 1) == 'd' then run_at = now + run_at elseif run_at < now then run_at = now end
    local at = string.format('%.0f', run_at)
    local header = 's 0 ' .. ARGV[a + 2] .. ' ' .. at .. ' 0' .. ARGV[a + 3]
    fresh[id] = header .. '\n\n' .. content
    writes[#writes + 1], scores[#scores + 1] = id, at
    writes[#writes + 1], scores[#scores + 1] = fresh[id], id
    if not soonest or run_at < soonest then soonest = run_at end
    reply[#reply + 1] = 0
    reply[#reply + 1] = run_at
    reply[#reply + 1] = header
  end
end
if soonest then
  -- A dispatcher looks at the shard each second anyhow: only what is due before that may have to wake it.
  local head = soonest < now + 1500 and redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]
  redis.call('HSET', KEYS[3], unpack(writes))
  redis.call('ZADD', KEYS[1], unpack(scores))
  if soonest < now + 1500 and (not head or soonest < tonumber(head)) then redis.call('PUBLISH', ARGV[1], ARGV[2]) end
end
return reply
