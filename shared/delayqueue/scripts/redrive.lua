-- Sends dead jobs back to scheduled, due now, with attempt 0.
--
-- KEYS  1 due  2 dead  3 jobs
-- ARGV  1 channel   2 what to publish   3 the most, when no ids are given   then ids
-- Reply how many moved
local time = redis.call('TIME')
local now = math.ceil((time[1] * 1000000 + time[2]) / 1000)
local ids = {}
for i = 4, #ARGV do
  if redis.call('ZSCORE', KEYS[2], ARGV[i]) then ids[#ids + 1] = ARGV[i] end
end
if #ARGV == 3 then ids = redis.call('ZRANGE', KEYS[2], 0, tonumber(ARGV[3]) - 1) end
local moved = 0
for _, id in ipairs(ids) do
  redis.call('ZREM', KEYS[2], id)
  local record = redis.call('HGET', KEYS[3], id)
  local max, claims, options, rest
  if record then max, claims, options, rest = string.match(record, '^z %d+ (%d+) %d+ (%d+)([^\n]*)(\n.*)$') end
  if max then
    local redrives = string.format('%d', (string.match(options, ' r(%d+)') or 0) + 1)
    options = string.gsub(string.gsub(string.gsub(options, ' u%d+', ''), ' r%d+', ''), ' x%d+', '') .. ' r' .. redrives -- who redrives wants it sent
    local at = string.format('%.0f', now)
    redis.call('HSET', KEYS[3], id, 's 0 ' .. max .. ' ' .. at .. ' ' .. claims .. options .. rest) -- claims fence a late answer, and only rise
    redis.call('ZADD', KEYS[1], at, id)
    moved = moved + 1
  end
end
if moved > 0 then redis.call('PUBLISH', ARGV[1], ARGV[2]) end
return moved
