-- Decides one check whose rules are several buckets that count in microseconds, with as few commands and numbers as can be.
--
-- KEYS  1 state, see decide.lua
-- ARGV  for each rule: its text as it stands in the state, limit, capacity in units of window µs, what the cost adds to the debt in these units;
--       then, in tests, now µs
-- Reply the debt of each rule before the charge. It was charged when each has room for it.
--       nil: the state was written under other rules, or the clock was set back. decide.lua knows what to do.
local call, sub, format = redis.call, string.sub, string.format
local now = #ARGV % 4 == 1 and tonumber(ARGV[#ARGV])
local tested = now
if not now then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end

local raw, elapsed = call('GET', KEYS[1]), 0
if raw then
  local last = tonumber(sub(raw, 1, 16))
  if not last or now < last or sub(raw, 17, 19) ~= ' 0\n' then return false end
  elapsed = now - last
end

local debts, lines, at, fits, longest = {}, '', 20, true, 0
for i = 1, #ARGV - 3, 4 do
  local rule, limit, capacity, debt = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]), 0
  if raw then
    local from = at + #rule
    if sub(raw, at, from - 1) ~= rule then return false end
    debt = tonumber(sub(raw, from, from + 15))
    if elapsed < debt / limit then debt = math.min(debt - elapsed * limit, capacity) else debt = 0 end
    at = from + 19
  end
  debts[#debts + 1] = debt
  debt = debt + ARGV[i + 3]
  fits = fits and debt <= capacity
  if debt / limit > longest then longest = debt / limit end
  lines = lines .. rule .. format('%16d 0\n', debt)
end
if raw and #raw ~= at - 1 then return false end
if fits then
  if tested then longest = 3600000000 end
  call('SET', KEYS[1], format('%16d 0\n', now) .. lines, 'PX', format('%d', math.ceil(math.ceil(longest) / 1000)))
end
return debts
