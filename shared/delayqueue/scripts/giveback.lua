-- Gives claimed jobs back that SQS did not accept: later again, with the attempt uncounted, or dead for a reason of their own.
--
-- KEYS  1 due  2 leased  3 dead  4 jobs
-- ARGV  1 retention of the dead ms   2 number of jobs   then for each: id, claim number, delay ms or "dead", error
-- Reply for each job: 1 done | 0 the claim is not this one any more
local time = redis.call('TIME')
local now = math.floor((time[1] * 1000000 + time[2]) / 1000)
local reply = {}
for i = 1, tonumber(ARGV[2]) do
  local a = 3 + (i - 1) * 4
  local id, claim, delay, why = ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3]
  local record = redis.call('HGET', KEYS[4], id)
  local attempt, max, at, claims, options, rest
  if record then attempt, max, at, claims, options, rest = string.match(record, '^g (%d+) (%d+) (%d+) (%d+)([^\n]*)\n[^\n]*(\n.*)$') end
  reply[i] = 0
  if claims == claim then
    redis.call('ZREM', KEYS[2], id)
    local state = 'z'
    options = string.gsub(options, ' u%d+', '')
    if delay == 'dead' then
      redis.call('ZADD', KEYS[3], string.format('%.0f', now + ARGV[1]), id)
    else
      state, attempt = 's', string.format('%d', attempt - 1)
      redis.call('ZADD', KEYS[1], string.format('%.0f', now + delay), id)
    end
    redis.call('HSET', KEYS[4], id, state .. ' ' .. attempt .. ' ' .. max .. ' ' .. at .. ' ' .. claims .. options .. '\n' .. why .. rest)
    reply[i] = 1
  end
end
return reply
