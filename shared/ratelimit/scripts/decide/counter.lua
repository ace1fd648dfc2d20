-- Sliding window counters. The cost of the previous window counts in proportion to the overlap of
-- that window with the sliding window. decide/rules.lua describes the functions.
--
-- The numbers of a counter are the start of the current window in µs, the cost charged to the
-- current window, and the cost charged to the previous window.
-- Requires: decide/fast

local counter = {columns = 3}

-- Returns the cost charged to the window that contains the given time, and the cost charged to the
-- window before it.
local function windows(stored, at, window)
  local start = at - at % window
  if stored[1] == start then return stored[2], stored[3] end
  if stored[1] == start - window then return 0, stored[2] end
  return 0, 0
end

function counter.open(r, stored, at)
  r.start, r.current, r.previous = at - at % r.window, 0, 0
  if stored and stored.window == r.window then
    r.current, r.previous = windows(stored, at, r.window)
  elseif stored then -- a new window length: the cost that still counts moves to the current window
    local current, previous = windows(stored, at, stored.window)
    r.current = current + ceil(previous * ((stored.window - at % stored.window) / stored.window))
  end
  r.elapsed = floor((at - r.start) / r.tick) -- in ticks
end

-- Returns the number of ticks after the start of a window at which a cost first fits, given the
-- cost charged to the window before it.
local function first_tick(r, previous, cost)
  if previous == 0 then return 0 end
  return max(0, r.ticks - floor((r.limit - cost) * r.ticks / previous))
end

function counter.wait(r, cost, at)
  if cost > r.limit then return -1 end
  local elapsed = at - r.start
  if r.current + cost <= r.limit then
    local tick = first_tick(r, r.previous, r.current + cost)
    if tick <= r.elapsed then return 0 end
    return tick * r.tick - elapsed
  end
  return r.window + first_tick(r, r.current, cost) * r.tick - elapsed
end

function counter.charge(r, cost) r.current = r.current + cost end

function counter.refund(r, cost)
  local rest = max(0, cost - r.current)
  r.current, r.previous = max(0, r.current - cost), max(0, r.previous - rest)
end

function counter.remaining(r)
  return max(0, floor((r.limit * r.ticks - r.previous * (r.ticks - r.elapsed)) / r.ticks) - r.current)
end

function counter.reset(r, at)
  local left = r.start + r.window - at
  if r.current > 0 then return left + r.window end
  return r.previous > 0 and left or 0
end

function counter.numbers(r)
  return string.format('%16.0f %16.0f %16.0f', r.start, r.current, r.previous)
end
