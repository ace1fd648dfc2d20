-- Fixed windows, which are aligned to the Unix epoch. decide/rules.lua describes the functions.
--
-- The numbers of a fixed window are its start in µs and the cost charged to it.
-- Requires: decide/fast

local fixed = {columns = 2}

function fixed.open(r, stored, at)
  r.start, r.charged = at - at % r.window, 0
  if stored and stored[1] + stored.window > at then r.charged = stored[2] end
end

function fixed.wait(r, cost, at)
  if cost > r.limit then return -1 end
  if r.charged + cost <= r.limit then return 0 end
  return r.start + r.window - at
end

function fixed.charge(r, cost) r.charged = r.charged + cost end
function fixed.refund(r, cost) r.charged = max(0, r.charged - cost) end
function fixed.remaining(r) return max(0, r.limit - r.charged) end
function fixed.reset(r, at) return r.charged > 0 and r.start + r.window - at or 0 end
function fixed.numbers(r) return string.format('%16.0f %16.0f', r.start, r.charged) end
