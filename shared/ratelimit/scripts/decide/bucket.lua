-- Token buckets and GCRA, which are the same algorithm. decide/rules.lua describes the functions.
--
-- A bucket stores two numbers: its debt in units (see prelude.lua) and its lag in µs. Debt drains
-- in whole ticks only, so the stored debt is the debt at the last whole tick, which was at the time
-- stored.last - lag. The lag is always less than one tick. r.debt is the debt at the time
-- r.drained.
-- Requires: decide/fast

local bucket = {columns = 2}

function bucket.open(r, stored, at)
  r.debt, r.drained = 0, at
  if not stored then return end

  local since = stored.last - stored[2]
  local elapsed = floor((at - since) / stored.tick)
  r.drained = since + elapsed * stored.tick
  local debt = 0
  if elapsed < stored[1] / stored.limit then debt = max(0, stored[1] - elapsed * stored.limit) end

  -- Converts the debt to the new rule's units: the same cost has a different number of units.
  if stored.window ~= r.window or stored.tick ~= r.tick then
    local ticks = stored.window / stored.tick
    local cost = floor(debt / ticks)
    debt = cost * r.ticks + ceil((debt - cost * ticks) / ticks * r.ticks)
  end
  r.debt = min(debt, r.burst * r.ticks)
end

function bucket.wait(r, cost, at)
  if cost > r.burst then return -1 end
  local over = r.debt - (r.burst - cost) * r.ticks
  if over <= 0 then return 0 end
  return ceil(over / r.limit) * r.tick - (at - r.drained)
end

function bucket.charge(r, cost) r.debt = r.debt + cost * r.ticks end
function bucket.refund(r, cost) r.debt = max(0, r.debt - cost * r.ticks) end
function bucket.remaining(r) return floor((r.burst * r.ticks - r.debt) / r.ticks) end

function bucket.reset(r, at)
  if r.debt == 0 then return 0 end
  return ceil(r.debt / r.limit) * r.tick - (at - r.drained)
end

function bucket.numbers(r, at) return string.format('%16.0f %.0f', r.debt, at - r.drained) end
