-- The ring of an exact window: see prelude.lua for its entries and decide/exact.lua for its fields.
-- Index 0 is the oldest entry.
--
-- Defines read_entry, total_of, first_index, write_entry and resize.
-- Requires: prelude, decide/fast

define $slot(r, i) ((r.head + i) % r.size) * ${ENTRY_BYTES}

-- Returns the time of an entry and the running total after it, modulo 2^32.
local function read_entry(r, i)
  local from = $slot(r, i)
  local bytes = redis.call('GETRANGE', r.key, from, from + ${ENTRY_BYTES} - 1)
  local a, b, c, d, e, f, g, h, j, k, l = string.byte(bytes, 1, ${ENTRY_BYTES})
  if not l then return 0, 0 end
  return $instant(a, b, c, d, e, f, g), $total(h, j, k, l)
end

-- Returns the running total after an entry. The entry stores the total modulo 2^32. The total
-- exceeds r.base by less than 2^32, so it can be calculated from r.base and the stored number.
local function total_of(r, i)
  local _, total = read_entry(r, i)
  return r.base + (total - r.base) % ${TOTALS}
end

-- Binary search: returns the first index for which test returns true, or the number of entries.
-- test must be monotonic: false up to an index, then true.
local function first_index(r, test)
  local low, high = 0, r.len
  while low < high do
    local middle = floor((low + high) / 2)
    if test(middle) then high = middle else low = middle + 1 end
  end
  return low
end

local function write_entry(r, i, instant, total)
  local entry
  $pack(entry, instant, total)
  redis.call('SETRANGE', r.key, $slot(r, i), entry)
end

-- Resizes the ring and moves its entries to its start. The new size is the needed number of entries
-- plus 10 %, and at least 16. The spare space never raises the size above the rule's limit. So
-- little spare space keeps the allocated memory below 16 bytes for each entry, and is enough to
-- make resizes rare while the ring grows.
local function resize(r, need)
  local size = max(need, min(r.limit, max(16, need + ceil(need / 10))))
  local entries, wrapped = '', max(0, r.head + r.len - r.size)
  if r.len > 0 then
    local last = (r.head + r.len - wrapped) * ${ENTRY_BYTES} - 1
    entries = redis.call('GETRANGE', r.key, r.head * ${ENTRY_BYTES}, last)
  end
  if wrapped > 0 then
    entries = entries .. redis.call('GETRANGE', r.key, 0, wrapped * ${ENTRY_BYTES} - 1)
  end
  redis.call('SET', r.key, entries .. string.rep('\0', (size - r.len) * ${ENTRY_BYTES}))
  r.head, r.size = 0, size
end
