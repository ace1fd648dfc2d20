-- Notes that SQS accepted claimed jobs: they are dispatched, or await their ack.
--
-- KEYS  1 leased  2 awaiting  3 done  4 jobs
-- ARGV  1 dedup window ms   2 default ack timeout ms   3 number of jobs   then for each: id, claim number
-- Reply for each job: 1 noted | 0 the claim is not this one any more
local call, match, format = redis.call, string.match, string.format
local count = tonumber(ARGV[3])
if count == 0 then return {} end
local time = redis.call('TIME')
local now = math.floor((time[1] * 1000000 + time[2]) / 1000)
local sent, over, ids = format(' t%d', now), format('%d', now + ARGV[1]), {}
for i = 1, count do ids[i] = ARGV[2 + 2 * i] end

-- What has to be written is gathered first, so that it is one command for each key.
local records = call('HMGET', KEYS[4], unpack(ids))
local reply, noted, awaiting, done, writes = {}, {}, {}, {}, {}
for i, id in ipairs(ids) do
  local attempt, max, at, claims, options, rest
  if records[i] then attempt, max, at, claims, options, rest = match(records[i], '^g (%d+) (%d+) (%d+) (%d+)([^\n]*)(.*)$') end
  if claims and claims == ARGV[3 + 2 * i] then
    local state = 'd '
    if max ~= '1' then
      state = 'w '
      awaiting[#awaiting + 1] = format('%d', now + (match(options, ' a(%d+)') or ARGV[2]))
      awaiting[#awaiting + 1] = id
    else
      done[#done + 1] = over
      done[#done + 1] = id
    end
    if options ~= '' then options = string.gsub(string.gsub(options, ' u%d+', ''), ' t%d+', '') end
    noted[#noted + 1] = id
    writes[#writes + 1] = id
    writes[#writes + 1] = state .. attempt .. ' ' .. max .. ' ' .. at .. ' ' .. claims .. options .. sent .. rest
    reply[i] = 1
  else
    reply[i] = 0
  end
end
if #noted > 0 then
  call('ZREM', KEYS[1], unpack(noted))
  if #awaiting > 0 then call('ZADD', KEYS[2], unpack(awaiting)) end
  if #done > 0 then call('ZADD', KEYS[3], unpack(done)) end
  call('HSET', KEYS[4], unpack(writes))
end
return reply
