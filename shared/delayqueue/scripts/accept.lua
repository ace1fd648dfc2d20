-- Notes that SQS accepted claimed jobs: they are dispatched, or await their ack.
--
-- KEYS  1 leased  2 awaiting  3 done  4 jobs
-- ARGV  1 dedup window ms   2 default ack timeout ms   3 number of jobs   then for each: id, claim number
-- Reply for each job: 1 noted | 0 the claim is not this one any more
local time = redis.call('TIME')
local now = math.floor((time[1] * 1000000 + time[2]) / 1000)
local reply = {}
for i = 1, tonumber(ARGV[3]) do
  local id, claim = ARGV[2 + 2 * i], ARGV[3 + 2 * i]
  local record = redis.call('HGET', KEYS[4], id)
  local attempt, max, at, claims, options, rest
  if record then attempt, max, at, claims, options, rest = string.match(record, '^g (%d+) (%d+) (%d+) (%d+)([^\n]*)(\n.*)$') end
  if claims == claim then
    redis.call('ZREM', KEYS[1], id)
    local state = 'd'
    if tonumber(max) > 1 then
      state = 'w'
      local timeout = string.match(options, ' a(%d+)') or ARGV[2]
      redis.call('ZADD', KEYS[2], string.format('%.0f', now + timeout), id)
    else
      redis.call('ZADD', KEYS[3], string.format('%.0f', now + ARGV[1]), id)
    end
    options = string.gsub(string.gsub(options, ' u%d+', ''), ' t%d+', '') .. ' t' .. string.format('%.0f', now)
    redis.call('HSET', KEYS[4], id, state .. ' ' .. attempt .. ' ' .. max .. ' ' .. at .. ' ' .. claims .. options .. rest)
    reply[i] = 1
  else
    reply[i] = 0
  end
end
return reply
