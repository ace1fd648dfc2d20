-- Decides one or several checks: all of their rules are charged, or none. It knows every algorithm;
-- bucket.lua, buckets.lua and decide/fast.lua answer the most common checks with less work.
--
-- KEYS  for each check: its state, then a ring for each of its rules that is a sliding_window. All
--       share a hash tag
-- ARGV  1 op       "check" | "peek" | "refund" | "log", a check of one sliding_window that
--                  decide/fast.lua answers if it can
--       2 now      µs, in tests; otherwise ""
--       3 checks   how many
--       4 channel  where refunds are published
--       then for each check: the id to publish, cost, 1 if its denial denies all checks or 0 in
--       shadow mode, how many rules;
--       and for each of its rules: definition (see prelude.lua), limit, window µs, burst, tick µs
-- Reply {1 allowed | 0 denied,
--       then for each check: 1 it fits | 0,
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
  -- Nothing was written yet, so that reading again forgets the charges. A key's clock is written
  -- nevertheless if the server's was set back: otherwise a key that is full would stay full.
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
