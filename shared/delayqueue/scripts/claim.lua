-- Claims due jobs under a lease, so that a dispatcher that dies loses none. An attempt is counted here.
--
-- KEYS  1 due  2 leased  3 done  4 jobs  5 paused  6 dead
-- ARGV  1 the most to claim   2 lease ms   3 dedup window ms   4 leases that lapsed in a row after which a job is dead
--       5 retention of the dead ms
-- Reply {now ms, next due ms or -1, paused 0|1, then for each claimed job: id, record}
local time = redis.call('TIME')
local now = math.floor((time[1] * 1000000 + time[2]) / 1000)
local paused = redis.call('GET', KEYS[5])
if paused then
  local till = tonumber(paused)
  if till == 0 then return {now, -1, 1} end
  if till > now then return {now, till, 1} end
  redis.call('DEL', KEYS[5])
end
local reply = {now, -1, 0}
local ids = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, tonumber(ARGV[1]))
if #ids > 0 then
  local records = redis.call('HMGET', KEYS[4], unpack(ids))
  local lease = string.format('%.0f', now + ARGV[2])
  local leases, writes = {}, {}
  redis.call('ZREM', KEYS[1], unpack(ids))
  for i, id in ipairs(ids) do
    local record = records[i]
    if record then
      local attempt, max, at, claims, options, rest = string.match(record, '^%S (%d+) (%d+) (%d+) (%d+)([^\n]*)(\n.*)$')
      local expires = options ~= '' and string.match(options, ' x(%d+)')
      local unanswered = options ~= '' and string.match(options, ' u(%d+)')
      if expires and tonumber(expires) <= now then
        writes[#writes + 1] = id
        writes[#writes + 1] = 'x ' .. attempt .. ' ' .. max .. ' ' .. at .. ' ' .. claims .. options .. rest
        redis.call('ZADD', KEYS[3], string.format('%.0f', now + ARGV[3]), id)
      elseif unanswered and tonumber(unanswered) >= tonumber(ARGV[4]) then
        local _, _, tail = string.find(rest, '^\n[^\n]*(\n.*)$')
        writes[#writes + 1] = id
        writes[#writes + 1] = 'z ' .. attempt .. ' ' .. max .. ' ' .. at .. ' ' .. claims .. options ..
          '\nclaimed ' .. unanswered .. ' times in a row, and no dispatcher lived to tell of it' .. tail
        redis.call('ZADD', KEYS[6], string.format('%.0f', now + ARGV[5]), id)
      else
        local claimed = 'g ' .. string.format('%d', attempt + 1) .. ' ' .. max .. ' ' .. at .. ' ' .. string.format('%d', claims + 1) .. options .. rest
        writes[#writes + 1] = id
        writes[#writes + 1] = claimed
        leases[#leases + 1] = lease
        leases[#leases + 1] = id
        reply[#reply + 1] = id
        reply[#reply + 1] = claimed
      end
    end
  end
  if #leases > 0 then redis.call('ZADD', KEYS[2], unpack(leases)) end
  if #writes > 0 then redis.call('HSET', KEYS[4], unpack(writes)) end
end
local next_due = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]
if next_due then reply[2] = tonumber(next_due) end
return reply
