-- Reads and writes the state of a key: see prelude.lua for its format.
--
-- A state is a table:
--   key      the Redis key
--   now      the time by the key's clock, in µs
--   offset   the key's clock minus the server's clock, in µs
--   rewound  true if the server's clock was set back after the last write
--   rules    the stored lines, by the rule's name. A line is a table: algorithm, limit, window,
--            tick, last (the time of the last write), and the numbers as an array.
--
-- Defines read_state and write_states.
-- Requires: decide/fast

-- Returns the state of a key. If nothing is stored, or if the format is unknown, the returned state
-- has no rules.
local function read_state(key)
  local state = {key = key, now = now, offset = 0, rules = {}}
  local last, offset, lines = string.match(redis.call('GET', key) or '', '^ *(%d+) +(%d+)\n(.*)$')
  if not last then return state end

  last = tonumber(last)
  state.offset = tonumber(offset)
  state.now = now + state.offset
  if state.now < last then
    state.now, state.rewound = last, true
    state.offset = last - now
  end

  for name, algorithm, limit, window, tick, numbers in
    string.gmatch(lines, '(%S+) (%S+) (%d+) (%d+) (%d+) ([^\n]*)\n') do
    local line = {
      last = last, algorithm = algorithm, limit = tonumber(limit), window = tonumber(window), tick = tonumber(tick),
    }
    for number in string.gmatch(numbers, '%d+') do line[#line + 1] = tonumber(number) end
    state.rules[name] = line
  end
  return state
end

-- Writes the state and the rings of a check, or deletes them if all rules are full.
local function write_state(check)
  local state, ttl, rings = check.state, 0, {}
  local text = {string.format('%16.0f %.0f\n', state.now, state.offset)}
  for _, r in ipairs(check.rules) do
    local full = r.algorithm.reset(r, state.now)
    if r.algorithm.write then
      r.algorithm.write(r)
      if full > 0 then
        rings[#rings + 1] = r.key
        full = r.window * 5 / 4 -- see $quarter in decide/fast.lua
      else
        redis.call('DEL', r.key)
      end
    end
    ttl = max(ttl, full)
    if full > 0 then text[#text + 1] = r.definition .. r.algorithm.numbers(r, state.now) .. '\n' end
  end

  if ttl == 0 then
    redis.call('DEL', state.key)
    return
  end
  local ms = ARGV.now == '' and string.format('%.0f', ceil(ttl / 1000)) or '${TEST_TTL}'
  redis.call('SET', state.key, table.concat(text), 'PX', ms)
  for _, key in ipairs(rings) do redis.call('PEXPIRE', key, ms) end
end

-- Writes the states of checks. A state that several checks share is written once.
local function write_states(checks)
  local written = {}
  for _, check in ipairs(checks) do
    if not written[check.state] then
      written[check.state] = true
      write_state(check)
    end
  end
end
