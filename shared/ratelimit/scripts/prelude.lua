-- Definitions that the rate-limit scripts share: the format of a key's state, and the format of the
-- ring of an exact window. An exact window is a rule with the algorithm sliding_window.
--
-- A state is text: a line "<last> <offset>", then a line for each rule:
--   last    the time of the last write, by the key's clock, in µs. It has 16 columns.
--   offset  key's clock minus server's clock, in µs. A key's clock never runs backwards: if the
--           server's clock is set back, the offset grows by the same amount.
--   rule    "<name> <algorithm> <limit> <window µs> <tick µs> <numbers>". The text before the
--           numbers is the rule's definition. Each number has 16 columns, except a bucket's lag
--           (see decide/bucket.lua): it is the last number of its line and is not padded.
--
-- A ring is a string with an entry for each check that an exact window admitted. An entry has 11
-- bytes, big-endian: 7 for the check's time in µs, and 4 for the running total of all costs up to
-- and including this check, modulo 2^32.
--
-- Arithmetic is exact because every product is below 2^53: policy.Rule.Tick chooses the tick such
-- that max(limit, burst) * (window / tick) is below 2^52.

-- The server's time in µs, from the reply of TIME.
define $micros(time) time[1] * 1000000 + time[2]

-- The TTL of all keys, in ms, if a test passes the time. Redis expires keys by the server's clock,
-- not by the test's.
define ${TEST_TTL} 3600000

define $last(state) string.sub(state, 1, 16)
define $column(state, start) string.sub(state, start, start + 15)

-- If the key's offset is 0, the first line of its state ends with ${NO_OFFSET}, and the first rule
-- starts at ${FIRST_RULE}.
define ${OFFSET} 17
define ${NO_OFFSET} ' 0\n'
define ${FIRST_RULE} 20
define $offset(state) string.sub(state, ${OFFSET}, ${FIRST_RULE} - 1)

-- The length and the format of a bucket's numbers if its tick is 1 µs: its lag is then always 0.
define ${BUCKET_NUMBERS} 19
define ${BUCKET_FORMAT} %16d 0\n

-- A bucket's debt is in units: a cost of 1 adds (window / tick) units, and each tick drains limit
-- units. $drain updates a debt after a number of elapsed ticks. It keeps the result between 0 and
-- the capacity.
define $drain(debt, elapsed, limit, capacity)
  if elapsed < debt / limit then
    debt = math.min(debt - elapsed * limit, capacity)
  else
    debt = 0
  end

-- $oversized is true if a ring should shrink: it has space for more than 64 entries and uses less
-- than a quarter of that space.
define ${ENTRY_BYTES} 11
define $oversized(size, entries) size > 64 and entries * 4 < size
define ${TOTALS} 4294967296
define $instant(a, b, c, d, e, f, g) (((((a * 256 + b) * 256 + c) * 256 + d) * 256 + e) * 256 + f) * 256 + g
define $total(a, b, c, d) ((a * 256 + b) * 256 + c) * 256 + d

-- $pack sets the variable that is passed as entry to the 11 bytes of an entry.
define $pack(entry, instant, total)
  do
    local at, sum = instant, total % ${TOTALS}
    local at7 = at % 256
    at = (at - at7) / 256
    local at6 = at % 256
    at = (at - at6) / 256
    local at5 = at % 256
    at = (at - at5) / 256
    local at4 = at % 256
    at = (at - at4) / 256
    local at3 = at % 256
    at = (at - at3) / 256
    local sum4 = sum % 256
    sum = (sum - sum4) / 256
    local sum3 = sum % 256
    sum = (sum - sum3) / 256
    entry = string.char(floor(at / 256), at % 256, at3, at4, at5, at6, at7,
      floor(sum / 256), sum % 256, sum3, sum4)
  end
