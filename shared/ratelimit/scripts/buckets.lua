-- Decides one check of several buckets, each with a tick of 1 µs.
--
-- KEYS  1 state
-- ARGV  for each rule: its definition exactly as in the state, its limit, the maximum debt in
--       units (see prelude.lua), the units that the cost adds to the debt;
--       then, in tests, the time in µs
-- Reply the debt of each rule before the charge. The check was charged if no rule's debt exceeds
--       its maximum after the charge.
--       nil: nothing was changed, and decide.lua must decide, because the state has different
--       rules or the server's clock was set back
-- Requires: prelude

local call, format = redis.call, string.format
local now = #ARGV % 4 == 1 and tonumber(ARGV[#ARGV])
local tested = now
if not now then
  local time = call('TIME')
  now = $micros(time)
end

local state, elapsed = call('GET', KEYS.state), 0
if state then
  local last = tonumber($last(state))
  if not last or now < last or $offset(state) ~= ${NO_OFFSET} then return false end
  elapsed = now - last
end

local debts, lines, at, fits, longest = {}, '', ${FIRST_RULE}, true, 0
for i = 1, #ARGV - 3, 4 do
  local rule, limit, capacity, debt = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]), 0
  if state then
    local start = at + #rule
    if string.sub(state, at, start - 1) ~= rule then return false end
    debt = tonumber($column(state, start))
    $drain(debt, elapsed, limit, capacity)
    at = start + ${BUCKET_NUMBERS}
  end

  debts[#debts + 1] = debt
  debt = debt + ARGV[i + 3]
  fits = fits and debt <= capacity
  if debt / limit > longest then longest = debt / limit end
  lines = lines .. rule .. format('${BUCKET_FORMAT}', debt)
end
if state and #state ~= at - 1 then return false end

if fits then
  local ttl = tested and '${TEST_TTL}' or format('%d', math.ceil(math.ceil(longest) / 1000))
  call('SET', KEYS.state, format('%16d', now) .. ${NO_OFFSET} .. lines, 'PX', ttl)
end
return debts
