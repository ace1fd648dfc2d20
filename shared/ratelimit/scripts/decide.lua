-- Decides one or several checks: all of their rules are charged, or none.
--
-- KEYS  for each check: its state, then one ring for each of its rules that is a sliding_window. All share a hash tag.
--       state is text: "<last µs, in 16 columns> <offset µs>", then a line for each rule: "<name> <algorithm> <limit> <window µs> <tick µs>
--       <numbers>", where each number has 16 columns, but for the lag of a bucket.
--       ring holds the instants that a sliding_window admitted: 11 bytes each, 7 for the instant (µs) and 4 for the running total, big-endian.
-- ARGV  1 "check" | "peek" | "refund"; "log" is a check that quick.lua, the front of this script, looks at first
--       2 now µs, or "" for the server's time   3 number of checks   4 channel that hears of refunds
--       then for each check: what to say of it there, cost, 1 when its denial denies all (0 in shadow), number of rules,
--       then for each rule: "<name> <algorithm> <limit> <window µs> <tick µs> ", limit, window µs, burst, tick µs
-- Reply {1 allowed | 0 denied, then for each check: 1 it fits | 0, and for each rule: remaining, µs to full, µs until it fits (-1 never)}
--
-- Time never runs backwards for a key: when the server's clock is set back, the key's own clock goes on from where it was (offset).
-- Every product stays below 2^53: the caller chooses a rule's tick so that burst or limit times window in ticks does.

-- Buckets: token_bucket and gcra are one algorithm. used is the debt in units of window ticks, drained by limit each tick; lag is
-- how long before the state's last instant it was so, less than a tick.
local bucket = {columns = 2}

function bucket.open(r, old, at)
  r.used, r.at = 0, at
  if not old then return end
  local since = old.last - old[2]
  local elapsed = floor((at - since) / old.tick)
  r.at = since + elapsed * old.tick
  local left = 0 -- drained at the old rate
  if elapsed < old[1] / old.limit then left = max(0, old[1] - elapsed * old.limit) end
  if old.window ~= r.window or old.tick ~= r.tick then -- units of the old window become as many of the new one
    local was = old.window / old.tick
    local whole = floor(left / was)
    left = whole * r.w + ceil((left - whole * was) / was * r.w)
  end
  r.used = min(left, r.burst * r.w)
end

function bucket.wait(r, n, at)
  if n > r.burst then return -1 end
  local over = r.used - (r.burst - n) * r.w
  if over <= 0 then return 0 end
  return ceil(over / r.limit) * r.tick - (at - r.at)
end

function bucket.charge(r, n) r.used = r.used + n * r.w end
function bucket.refund(r, n) r.used = max(0, r.used - n * r.w) end
function bucket.remaining(r) return floor((r.burst * r.w - r.used) / r.w) end

function bucket.reset(r, at)
  if r.used == 0 then return 0 end
  return ceil(r.used / r.limit) * r.tick - (at - r.at)
end

function bucket.numbers(r, at) return string.format('%16.0f %.0f', r.used, at - r.at) end

-- Fixed windows are aligned to the epoch.
local fixed = {columns = 2}

function fixed.open(r, old, at)
  r.start, r.count = at - at % r.window, 0
  if old and old[1] + old.window > at then r.count = old[2] end
end

function fixed.wait(r, n, at)
  if n > r.limit then return -1 end
  if r.count + n <= r.limit then return 0 end
  return r.start + r.window - at
end

function fixed.charge(r, n) r.count = r.count + n end
function fixed.refund(r, n) r.count = max(0, r.count - n) end
function fixed.remaining(r) return max(0, r.limit - r.count) end
function fixed.reset(r, at) return r.count > 0 and r.start + r.window - at or 0 end
function fixed.numbers(r) return string.format('%16.0f %16.0f', r.start, r.count) end

-- The sliding counter weighs the window before by the part of it that still overlaps.
local counter = {columns = 3}

local function counted(old, at, window)
  local start = at - at % window
  if old[1] == start then return old[2], old[3] end
  if old[1] == start - window then return 0, old[2] end
  return 0, 0
end

function counter.open(r, old, at)
  r.start, r.cur, r.prev = at - at % r.window, 0, 0
  if old and old.window == r.window then
    r.cur, r.prev = counted(old, at, r.window)
  elseif old then -- what was in the old window counts in the new one
    local cur, prev = counted(old, at, old.window)
    r.cur = cur + ceil(prev * ((old.window - at % old.window) / old.window))
  end
  r.e = floor((at - r.start) / r.tick)
end

-- The first tick of a window at which prev of the window before and n more fit; not below 0.
local function fits_from(r, prev, n)
  if prev == 0 then return 0 end
  return max(0, r.w - floor((r.limit - n) * r.w / prev))
end

function counter.wait(r, n, at)
  if n > r.limit then return -1 end
  local into = at - r.start
  if r.cur + n <= r.limit then
    local e = fits_from(r, r.prev, r.cur + n)
    if e <= r.e then return 0 end
    return e * r.tick - into
  end
  return r.window + fits_from(r, r.cur, n) * r.tick - into
end

function counter.charge(r, n) r.cur = r.cur + n end

function counter.refund(r, n)
  local rest = max(0, n - r.cur)
  r.cur, r.prev = max(0, r.cur - n), max(0, r.prev - rest)
end

function counter.remaining(r) return max(0, floor((r.limit * r.w - r.prev * (r.w - r.e)) / r.w) - r.cur) end

function counter.reset(r, at)
  local left = r.start + r.window - at
  if r.cur > 0 then return left + r.window end
  return r.prev > 0 and left or 0
end

function counter.numbers(r) return string.format('%16.0f %16.0f %16.0f', r.start, r.cur, r.prev) end

-- The exact log. head is the slot of the oldest live entry, len how many are live, size how many the ring has room for; base and total
-- are the running totals before the oldest and after the newest. Running totals are stored modulo 2^32; live ones never span as much.
local exact = {columns = 5}
local ENTRY, WRAP = 11, 4294967296

local function entry(r, i)
  local at = ((r.head + i) % r.size) * ENTRY
  local raw = redis.call('GETRANGE', r.key, at, at + ENTRY - 1)
  local a, b, c, d, e, f, g, h, j, k, l = string.byte(raw, 1, ENTRY)
  if not l then return 0, 0 end
  return ((((((a * 256 + b) * 256 + c) * 256 + d) * 256 + e) * 256 + f) * 256 + g), ((h * 256 + j) * 256 + k) * 256 + l
end

local function pack(at, total)
  local s = {}
  for i = 11, 8, -1 do
    s[i] = total % 256
    total = floor(total / 256)
  end
  for i = 7, 1, -1 do
    s[i] = at % 256
    at = floor(at / 256)
  end
  return string.char(unpack(s))
end

-- The running total of entry i, counted up from base, so that it does not wrap.
local function total_of(r, i)
  local _, t = entry(r, i)
  return r.base + (t - r.base) % WRAP
end

-- The first live index from lo on for which test holds; len when there is none. test holds from some index on.
local function search(r, lo, test)
  local hi = r.len
  while lo < hi do
    local mid = floor((lo + hi) / 2)
    if test(mid) then hi = mid else lo = mid + 1 end
  end
  return lo
end

function exact.open(r, old, at)
  r.head, r.len, r.size, r.base, r.total, r.added = 0, 0, 0, 0, 0, {}
  if not old or redis.call('STRLEN', r.key) ~= old[3] * ENTRY then return end
  r.head, r.len, r.size, r.base, r.total = old[1], old[2], old[3], old[4], old[5]
  local edge = at - r.window
  if r.len == 0 or entry(r, 0) > edge then return end
  local live = search(r, 0, function(i) return entry(r, i) > edge end)
  if live == r.len then
    r.head, r.len, r.base = 0, 0, r.total
  else
    r.base = total_of(r, live - 1)
    r.head, r.len = (r.head + live) % r.size, r.len - live
  end
end

function exact.wait(r, n, at)
  if n > r.limit then return -1 end
  local over = r.total - r.base + n - r.limit
  if over <= 0 then return 0 end
  local i = search(r, 0, function(k) return total_of(r, k) - r.base >= over end)
  if i == r.len then return r.window end -- what this very call admitted must leave first
  return entry(r, i) + r.window - at
end

function exact.charge(r, n, at)
  r.total = r.total + n
  r.added[#r.added + 1] = {at, r.total}
end

function exact.refund(r, n)
  local target = max(r.base, r.total - n)
  local i = search(r, 0, function(k) return total_of(r, k) >= target end)
  if target == r.base then
    r.len = 0
  elseif i < r.len then
    r.len = i + 1
    local at = entry(r, i)
    r.rewrite = {i, pack(at, target % WRAP)}
  end
  r.total = target
end

function exact.remaining(r) return max(0, r.limit - (r.total - r.base)) end

function exact.reset(r, at)
  local newest = #r.added > 0 and r.added[#r.added][1] or (r.len > 0 and entry(r, r.len - 1)) or nil
  return newest and newest + r.window - at or 0
end

-- Makes the ring as large as need and a tenth, but no larger than the limit, with the live entries at its start. So it takes less than 16
-- bytes for each entry, what the allocator rounds up included, and all its copies together are a few for each entry.
local function resize(r, need)
  local size = max(need, min(r.limit, max(16, need + ceil(need / 10))))
  local live, wrapped = '', max(0, r.head + r.len - r.size)
  if r.len > 0 then live = redis.call('GETRANGE', r.key, r.head * ENTRY, (r.head + r.len - wrapped) * ENTRY - 1) end
  if wrapped > 0 then live = live .. redis.call('GETRANGE', r.key, 0, wrapped * ENTRY - 1) end
  redis.call('SET', r.key, live .. string.rep('\0', (size - r.len) * ENTRY))
  r.head, r.size = 0, size
end

function exact.write(r)
  if r.rewrite then redis.call('SETRANGE', r.key, ((r.head + r.rewrite[1]) % r.size) * ENTRY, r.rewrite[2]) end
  local need = r.len + #r.added
  if need > r.size or need * 4 < r.size and r.size > 64 then resize(r, need) end
  for _, a in ipairs(r.added) do
    redis.call('SETRANGE', r.key, ((r.head + r.len) % r.size) * ENTRY, pack(a[1], a[2] % WRAP))
    r.len = r.len + 1
  end
end

function exact.numbers(r)
  return string.format('%16.0f %16.0f %16.0f %16.0f %16.0f', r.head, r.len, r.size, r.base, r.total)
end

local algorithms = {
  token_bucket = bucket, gcra = bucket, fixed_window = fixed, sliding_window_counter = counter, sliding_window = exact,
}

-- The state of a key, read once in a call. What does not look like one is none.
local function read(key)
  local s = {key = key, last = now, offset = 0, lines = {}}
  local last, offset, rest = string.match(redis.call('GET', key) or '', '^ *(%d+) +(%d+)\n(.*)$')
  if last then
    s.offset = tonumber(offset)
    s.last = now + s.offset
    if s.last < tonumber(last) then
      s.last, s.rewound = tonumber(last), true
      s.offset = s.last - now
    end
    for name, algorithm, limit, window, tick, numbers in string.gmatch(rest, '(%S+) (%S+) (%d+) (%d+) (%d+) ([^\n]*)\n') do
      local line = {last = tonumber(last), algorithm = algorithm, limit = tonumber(limit), window = tonumber(window), tick = tonumber(tick)}
      for number in string.gmatch(numbers, '%d+') do line[#line + 1] = tonumber(number) end
      s.lines[name] = line
    end
  end
  return s
end

-- Reads the arguments into checks; those of one key share its state and its rules.
local function parse()
  local checks, states, opened, k, a = {}, {}, {}, 1, 5
  for i = 1, tonumber(ARGV[3]) do
    local key = KEYS[k]
    states[key] = states[key] or read(key)
    local c = {id = ARGV[a], cost = tonumber(ARGV[a + 1]), enforced = ARGV[a + 2] == '1', state = states[key], rules = {}}
    k = k + 1
    for j = 1, tonumber(ARGV[a + 3]) do
      local p = a + 4 + (j - 1) * 5
      local rule = ARGV[p]
      local name, algorithm = string.match(rule, '^(%S+) (%S+)')
      local id = key .. '\n' .. name
      local r = opened[id]
      if not r then
        r = {
          rule = rule, act = algorithms[algorithm], limit = tonumber(ARGV[p + 1]), window = tonumber(ARGV[p + 2]),
          burst = tonumber(ARGV[p + 3]), tick = tonumber(ARGV[p + 4]),
        }
        r.w = r.window / r.tick
        if r.act == exact then r.key = KEYS[k] end
        local old = c.state.lines[name]
        if old and (old.algorithm ~= algorithm or #old ~= r.act.columns) then old = nil end
        r.act.open(r, old, c.state.last)
        opened[id] = r
      end
      if r.act == exact then k = k + 1 end
      c.rules[j] = r
    end
    a = a + 4 + #c.rules * 5
    checks[i] = c
  end
  return checks
end

local function fits(c)
  for _, r in ipairs(c.rules) do
    if r.act.wait(r, c.cost, c.state.last) ~= 0 then return false end
  end
  return true
end

local function write(checks)
  local done = {}
  for _, c in ipairs(checks) do
    if not done[c.state] then
      done[c.state] = true
      local at, keep, text, rings = c.state.last, 0, {string.format('%16.0f %.0f\n', c.state.last, c.state.offset)}, {}
      for _, r in ipairs(c.rules) do
        local full = r.act.reset(r, at)
        if r.act.write then
          r.act.write(r)
          if full > 0 then
            rings[#rings + 1] = r.key
            full = r.window * 5 / 4 -- so that quick.lua renews it only once in each quarter of a window
          else
            redis.call('DEL', r.key)
          end
        end
        keep = max(keep, full)
        if full > 0 then
          text[#text + 1] = r.rule .. r.act.numbers(r, at) .. '\n'
        end
      end
      if keep == 0 then
        redis.call('DEL', c.state.key)
      else
        if ARGV[2] ~= '' then keep = 3600000000 end -- the server's clock is not the caller's
        local ms = string.format('%.0f', ceil(keep / 1000))
        redis.call('SET', c.state.key, table.concat(text), 'PX', ms)
        for _, key in ipairs(rings) do redis.call('PEXPIRE', key, ms) end
      end
    end
  end
end

local checks = parse()
local denied = false
local reply = {1}

if op == 'refund' then
  for _, c in ipairs(checks) do
    for _, r in ipairs(c.rules) do r.act.refund(r, c.cost) end
  end
  write(checks)
  for _, c in ipairs(checks) do redis.call('PUBLISH', ARGV[4], c.id) end
elseif op == 'check' then
  for _, c in ipairs(checks) do
    c.fits = fits(c)
    if c.fits then
      for _, r in ipairs(c.rules) do r.act.charge(r, c.cost, c.state.last) end
      c.charged = true
    elseif c.enforced then
      denied = true
    end
  end
  if denied then
    checks = parse() -- forget the charges: nothing was written
    reply[1] = 0
    for _, c in ipairs(checks) do -- a clock that was set back must go on from here, or a key that is full would stay so
      if c.state.rewound then write({c}) end
    end
  else
    write(checks)
  end
end

for _, c in ipairs(checks) do
  local ok = c.charged or fits(c)
  reply[#reply + 1] = ok and 1 or 0
  for _, r in ipairs(c.rules) do
    reply[#reply + 1] = r.act.remaining(r)
    reply[#reply + 1] = r.act.reset(r, c.state.last)
    reply[#reply + 1] = c.charged and 0 or r.act.wait(r, c.cost, c.state.last)
  end
end
return reply
