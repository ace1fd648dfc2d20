-- Decides one check whose only rule is a bucket that counts in microseconds: buckets.lua for the commonest check of all.
--
-- KEYS  1 state, see decide.lua
-- ARGV  1 " 0\n" and the rule's text, as they stand in the state   2 limit   3 capacity in units of window µs
--       4 what the cost adds to the debt in these units   5 in tests, now µs
-- Reply the debt before the charge. It was charged when there is room for it.
--       nil: the state was written under another rule, or the clock was set back. decide.lua knows what to do.
local call, sub, format, ARGV = redis.call, string.sub, string.format, ARGV
local rule, limit, capacity, now = ARGV[1], ARGV[2] + 0, ARGV[3] + 0, ARGV[5]
if now then
  now = now + 0
else
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end

local raw, debt = call('GET', KEYS[1]), 0
if raw then
  local from = 17 + #rule
  local last = tonumber(sub(raw, 1, 16))
  if #raw ~= from + 18 or sub(raw, 17, from - 1) ~= rule or not last or now < last then return false end
  debt = sub(raw, from, from + 15) + 0
  local elapsed = now - last
  if elapsed < debt / limit then debt = math.min(debt - elapsed * limit, capacity) else debt = 0 end
end
local after = debt + ARGV[4]
if after <= capacity then
  local keep = ARGV[5] and '3600000' or format('%d', math.ceil(math.ceil(after / limit) / 1000))
  call('SET', KEYS[1], format('%16d%s%16d 0\n', now, rule, after), 'PX', keep)
end
return debt
