-- Takes in jobs of one shard; each for itself, idempotent by id.
--
-- KEYS  1 due  2 done  3 jobs        (see record.go for a job's record: "<header>\n<error>\n<extra>\n<payload>")
-- ARGV  1 channel to wake the dispatcher   2 what to publish   3 number of jobs
--       then for each job: id, "d<ms>" to run after a delay or "r<ms>" to run at an instant, "<max attempts>", header's options, "<extra>\n<payload>"
-- Reply for each job: 0 taken in | 1 known with this content | 2 known with another content; its run_at ms; its header
local time = redis.call('TIME')
local now = math.ceil((time[1] * 1000000 + time[2]) / 1000)
local head = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]
local soonest
local reply = {}
for i = 1, tonumber(ARGV[3]) do
  local a = 4 + (i - 1) * 5
  local id, when, max, options, content = ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4]
  local known = redis.call('HGET', KEYS[3], id)
  if known then
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
    local header = 's 0 ' .. max .. ' ' .. at .. ' 0' .. options
    redis.call('HSET', KEYS[3], id, header .. '\n\n' .. content)
    redis.call('ZADD', KEYS[1], at, id)
    if not soonest or run_at < soonest then soonest = run_at end
    reply[#reply + 1] = 0
    reply[#reply + 1] = run_at
    reply[#reply + 1] = header
  end
end
if soonest and (not head or soonest < tonumber(head)) then redis.call('PUBLISH', ARGV[1], ARGV[2]) end
return reply
