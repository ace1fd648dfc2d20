-- Exact windows (the algorithm sliding_window), which keep an entry for every admitted check in a
-- ring. decide/rules.lua describes the functions.
--
-- The numbers of an exact window are
--   head   the slot of the oldest entry in the ring
--   len    the number of entries in the ring
--   size   the number of entries that the ring has space for
--   base   the running total before the oldest entry
--   total  the running total after the newest entry
-- exact.write writes the changes to the ring. Until then, r.added contains the entries to append,
-- and r.rewritten the replacement for the newest entry.
-- Requires: decide/fast, decide/ring

local exact = {columns = 5}

function exact.open(r, stored, at)
  r.head, r.len, r.size, r.base, r.total, r.added = 0, 0, 0, 0, 0, {}
  if not stored or redis.call('STRLEN', r.key) ~= stored[3] * ${ENTRY_BYTES} then return end
  r.head, r.len, r.size, r.base, r.total = stored[1], stored[2], stored[3], stored[4], stored[5]

  -- Drops the entries that have left the window.
  local edge = at - r.window
  if r.len == 0 or read_entry(r, 0) > edge then return end
  local live = first_index(r, function(i) return read_entry(r, i) > edge end)
  if live == r.len then
    r.head, r.len, r.base = 0, 0, r.total
  else
    r.base = total_of(r, live - 1)
    r.head, r.len = (r.head + live) % r.size, r.len - live
  end
end

function exact.wait(r, cost, at)
  if cost > r.limit then return -1 end
  local over = r.total - r.base + cost - r.limit
  if over <= 0 then return 0 end

  local i = first_index(r, function(k) return total_of(r, k) - r.base >= over end)
  if i == r.len then return r.window end -- entries that this call adds must leave the window first
  return read_entry(r, i) + r.window - at
end

function exact.charge(r, cost, at)
  r.total = r.total + cost
  r.added[#r.added + 1] = {instant = at, total = r.total}
end

-- Subtracts the cost from the newest entries.
function exact.refund(r, cost)
  local total = max(r.base, r.total - cost)
  local i = first_index(r, function(k) return total_of(r, k) >= total end)
  if total == r.base then
    r.len, r.rewritten = 0, nil
  elseif i < r.len then
    r.len = i + 1
    r.rewritten = {instant = read_entry(r, i), total = total}
  end
  r.total = total
end

function exact.remaining(r) return max(0, r.limit - (r.total - r.base)) end

function exact.reset(r, at)
  local newest
  if #r.added > 0 then
    newest = r.added[#r.added].instant
  elseif r.len > 0 then
    newest = read_entry(r, r.len - 1)
  end
  return newest and newest + r.window - at or 0
end

function exact.write(r)
  if r.rewritten then write_entry(r, r.len - 1, r.rewritten.instant, r.rewritten.total) end
  local need = r.len + #r.added
  if need > r.size or $oversized(r.size, need) then resize(r, need) end
  for _, entry in ipairs(r.added) do
    write_entry(r, r.len, entry.instant, entry.total)
    r.len = r.len + 1
  end
end

function exact.numbers(r)
  return string.format('%16.0f %16.0f %16.0f %16.0f %16.0f', r.head, r.len, r.size, r.base, r.total)
end
