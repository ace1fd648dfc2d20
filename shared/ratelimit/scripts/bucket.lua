-- Decides one check of one bucket with a tick of 1 µs. This is the most common check; buckets.lua
-- is for several buckets.
--
-- KEYS  1 state
-- ARGV  1 rule      " 0\n" and the rule's definition, exactly as in the state
--       2 limit
--       3 capacity  the maximum debt, in units (see prelude.lua)
--       4 charge    the units that the cost adds to the debt
--       5 now       µs, in tests; otherwise absent
-- Reply the debt before the charge. The check was charged if debt + charge <= capacity.
--       nil: nothing was changed, and decide.lua must decide, because the state has a different
--       rule or the server's clock was set back
-- Requires: prelude

local call, format = redis.call, string.format
local rule, limit, capacity, now = ARGV.rule, ARGV.limit + 0, ARGV.capacity + 0, ARGV.now
if now then
  now = now + 0
else
  local time = call('TIME')
  now = $micros(time)
end

local state, debt = call('GET', KEYS.state), 0
if state then
  local start = ${OFFSET} + #rule
  if #state + 1 ~= start + ${BUCKET_NUMBERS} or string.sub(state, ${OFFSET}, start - 1) ~= rule then
    return false
  end
  local last = $last(state) + 0
  if now < last then return false end

  debt = $column(state, start) + 0
  local elapsed = now - last
  $drain(debt, elapsed, limit, capacity)
end

local after = debt + ARGV.charge
if after <= capacity then
  local ttl = ARGV.now and '${TEST_TTL}' or format('%d', math.ceil(math.ceil(after / limit) / 1000))
  call('SET', KEYS.state, format('%16d%s${BUCKET_FORMAT}', now, rule, after), 'PX', ttl)
end
return debt
