-- Definitions for the scripts of rate limits: the state of a key and the ring of an exact window.
--
-- A state is text: a line "<last> <offset>", then a line for each rule:
--   last    when the state was written, by the key's clock: µs in 16 columns
--   offset  µs by which the key's clock is ahead of the server's. A key's clock never runs
--           backwards: if the server's clock is set back, the offset grows by as much.
--   rule    "<name> <algorithm> <limit> <window µs> <tick µs> <numbers>". The text before the
--           numbers is the rule's definition. Each number has 16 columns, except for the lag of
--           a bucket, the last of its line, which has as many digits as it needs.
--
-- A ring is the string of the instants that an exact window admitted. An entry has 11 bytes: 7 for
-- the instant in µs, 4 for the running total after it modulo 2^32, both big-endian.
--
-- Every product stays below 2^53, so that numbers are exact: the caller chooses a rule's tick so
-- that its limit or burst times its window in ticks does.

-- The server's time in µs, from the reply of TIME.
define $micros(time) time[1] * 1000000 + time[2]

-- How long a state is kept, in ms, if a test passes the time: a time to live runs on the server's
-- clock.
define ${TEST_TTL} 3600000

define $last(state) string.sub(state, 1, 16)
define $column(state, start) string.sub(state, start, start + 15)

-- The first line of a key whose clock is the server's ends with ${NO_OFFSET}. Its first rule begins
-- at ${FIRST_RULE}.
define ${OFFSET} 17
define ${NO_OFFSET} ' 0\n'
define ${FIRST_RULE} 20
define $offset(state) string.sub(state, ${OFFSET}, ${FIRST_RULE} - 1)

-- How much of a rule's line the numbers of a bucket take, when its tick is 1 µs and so its lag 0.
define ${BUCKET_NUMBERS} 19
define ${BUCKET_FORMAT} %16d 0\n

-- A bucket's debt is in units: a cost of 1 is as many units as the window has ticks, and each tick
-- drains as many as the limit. This drains a debt by the elapsed ticks to no less than 0, and cuts
-- it to the capacity.
define $drain(debt, elapsed, limit, capacity)
  if elapsed < debt / limit then
    debt = math.min(debt - elapsed * limit, capacity)
  else
    debt = 0
  end

-- Bytes of a ring, and whether it is to be made smaller for its entries.
define ${ENTRY_BYTES} 11
define $oversized(size, entries) size > 64 and entries * 4 < size
define ${TOTALS} 4294967296
define $instant(a, b, c, d, e, f, g) (((((a * 256 + b) * 256 + c) * 256 + d) * 256 + e) * 256 + f) * 256 + g
define $total(a, b, c, d) ((a * 256 + b) * 256 + c) * 256 + d

-- Sets entry to the bytes of an instant and a running total.
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
