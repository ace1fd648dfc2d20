-- Reads the arguments of decide.lua.
--
-- A check is a table: id, cost, enforced, state (see decide/state.lua) and rules. Checks of the
-- same key share their state and their rules. A rule is a table: definition, limit, window, burst,
-- tick, ticks (the window in ticks), key (of its ring) and algorithm. An algorithm is a table:
--   columns             the number of numbers in a stored line
--   open(r, stored, at) sets the fields of r from its stored line; stored is nil if there is none
--   wait(r, cost, at)   returns the µs until the cost fits: 0 now, -1 never
--   charge(r, cost, at) and refund(r, cost) change the fields
--   remaining(r)        returns the cost that fits now
--   reset(r, at)        returns the µs until the rule is full, that is, until no charge counts
--   numbers(r, at)      returns the numbers to store
--   write(r)            writes the ring. Only exact windows have this function. It must be called
--                       before numbers.
-- The argument "at" is the time by the key's clock in µs.
--
-- Defines read_checks.
-- Requires: decide/fast, decide/bucket, decide/fixed, decide/counter, decide/exact, decide/state

local algorithms = {
  token_bucket = bucket, gcra = bucket, fixed_window = fixed, sliding_window_counter = counter, sliding_window = exact,
}

-- Returns the rule that ARGV[a] to ARGV[a + 4] describe, with its fields read from state. ring is
-- the key of its ring if it is an exact window.
local function open_rule(a, name, algorithm, state, ring)
  local r = {
    definition = ARGV[a], algorithm = algorithms[algorithm], limit = tonumber(ARGV[a + 1]),
    window = tonumber(ARGV[a + 2]), burst = tonumber(ARGV[a + 3]), tick = tonumber(ARGV[a + 4]), key = ring,
  }
  r.ticks = r.window / r.tick

  local stored = state.rules[name]
  if stored and (stored.algorithm ~= algorithm or #stored ~= r.algorithm.columns) then stored = nil end
  r.algorithm.open(r, stored, state.now)
  return r
end

-- Returns the checks that the arguments describe.
local function read_checks()
  local checks, states, opened, k, a = {}, {}, {}, 1, 5
  for i = 1, tonumber(ARGV.checks) do
    local key = KEYS[k]
    states[key] = states[key] or read_state(key)
    local check = {
      id = ARGV[a], cost = tonumber(ARGV[a + 1]), enforced = ARGV[a + 2] == '1', state = states[key], rules = {},
    }
    local rules = tonumber(ARGV[a + 3])
    k, a = k + 1, a + 4

    for j = 1, rules do
      local name, algorithm = string.match(ARGV[a], '^(%S+) (%S+)')
      local id = key .. '\n' .. name
      local r = opened[id] or open_rule(a, name, algorithm, check.state, KEYS[k])
      opened[id] = r
      check.rules[j] = r
      if r.algorithm == exact then k = k + 1 end
      a = a + 5
    end
    checks[i] = check
  end
  return checks
end
