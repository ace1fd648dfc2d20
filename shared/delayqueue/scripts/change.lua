-- Cancels or changes a job that is still scheduled.
--
-- KEYS  1 due  2 done  3 jobs
-- ARGV  1 "cancel" | "change"   2 id   3 dedup window ms
--       4 "d<ms>" | "r<ms>" | "" for the same time   5 the new payload, or ""   6 "1" when there is a new payload   7 channel   8 what to publish
-- Reply {1, header}   {0, header, or "" when there is no such job}
local time = redis.call('TIME')
local now = math.ceil((time[1] * 1000000 + time[2]) / 1000)
local id = ARGV[2]
local record = redis.call('HGET', KEYS[3], id)
if not record then return {0, ''} end
local header = string.match(record, '^[^\n]*')
local attempt, max, at, claims, options, why, extra, payload = string.match(record, '^s (%d+) (%d+) (%d+) (%d+)([^\n]*)\n([^\n]*)\n([^\n]*)\n(.*)$')
if not attempt then
  if ARGV[1] == 'cancel' and string.sub(header, 1, 1) == 'c' then return {1, header} end -- the answer to this cancel was lost
  return {0, header}
end
if ARGV[1] == 'cancel' then
  redis.call('ZREM', KEYS[1], id)
  redis.call('ZADD', KEYS[2], string.format('%.0f', now + ARGV[3]), id)
  header = 'c ' .. attempt .. ' ' .. max .. ' ' .. at .. ' ' .. claims .. options
else
  if ARGV[4] ~= '' then
    local run_at = tonumber(string.sub(ARGV[4], 2))
    if string.sub(ARGV[4], 1, 1) == 'd' then run_at = now + run_at elseif run_at < now then run_at = now end
    at = string.format('%.0f', run_at)
    local head = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]
    redis.call('ZADD', KEYS[1], at, id)
    if run_at < tonumber(head) then redis.call('PUBLISH', ARGV[7], ARGV[8]) end
  end
  if ARGV[6] == '1' then payload = ARGV[5] end
  header = 's ' .. attempt .. ' ' .. max .. ' ' .. at .. ' ' .. claims .. options
end
redis.call('HSET', KEYS[3], id, header .. '\n' .. why .. '\n' .. extra .. '\n' .. payload)
return {1, header}
