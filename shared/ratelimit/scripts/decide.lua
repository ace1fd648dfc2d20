-- Decides one or more checks: all of their rules are charged, or none. It supports every algorithm;
-- bucket.lua, buckets.lua and decide/fast.lua decide the most common checks with less work.
--
-- KEYS  for each check: its state, then the ring of each of its sliding_window rules. All keys have
--       the same hash tag
-- ARGV  1 op       "check" | "peek" | "refund" | "log". "log" is a "check" of a single
--                  sliding_window rule: decide/fast.lua decides it if it can; otherwise it is
--                  decided like every "check"
--       2 now      µs, in tests; otherwise ""
--       3 checks   the number of checks
--       4 channel  the Pub/Sub channel for refunds
--       then for each check: the id to publish, cost, enforced (1, or 0 in shadow mode), the number
--       of rules;
--       and for each of its rules: definition (see prelude.lua), limit, window µs, burst, tick µs
-- Reply {1 allowed | 0 denied,
--       then for each check: 1 if its cost fits, otherwise 0,
--       and for each of its rules: remaining, µs until full, µs until the cost fits (-1 never)}
-- Requires: prelude, decide/fast, decide/rules

local checks, denied, reply = read_checks(), false, {1}

local function fits(check)
  for _, r in ipairs(check.rules) do
    if r.algorithm.wait(r, check.cost, check.state.now) ~= 0 then return false end
  end
  return true
end

if op == 'refund' then
  for _, check in ipairs(checks) do
    for _, r in ipairs(check.rules) do r.algorithm.refund(r, check.cost) end
  end
  write_states(checks)
  for _, check in ipairs(checks) do redis.call('PUBLISH', ARGV.channel, check.id) end
elseif op == 'check' then
  for _, check in ipairs(checks) do
    if fits(check) then
      for _, r in ipairs(check.rules) do r.algorithm.charge(r, check.cost, check.state.now) end
      check.charged = true
    elseif check.enforced then
      denied = true
    end
  end
end

if denied then
  -- Discards the charges, which are not written yet, by reading the states again. If the server's
  -- clock was set back, stores the key's new offset (see prelude.lua). Otherwise every later call
  -- would compute the same time, until the server's clock catches up.
  checks = read_checks()
  reply[1] = 0
  for _, check in ipairs(checks) do
    if check.state.rewound then write_states({check}) end
  end
elseif op == 'check' then
  write_states(checks)
end

for _, check in ipairs(checks) do
  local at = check.state.now
  reply[#reply + 1] = (check.charged or fits(check)) and 1 or 0
  for _, r in ipairs(check.rules) do
    reply[#reply + 1] = r.algorithm.remaining(r)
    reply[#reply + 1] = r.algorithm.reset(r, at)
    reply[#reply + 1] = check.charged and 0 or r.algorithm.wait(r, check.cost, at)
  end
end
return reply
