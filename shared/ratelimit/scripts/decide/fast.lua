-- The fast path of decide.lua: decides one check of one exact window, if the rule's definition is
-- the same as in the state. It needs fewer commands than the other files of decide.lua and returns
-- the same reply. If it cannot decide, it changes nothing, and the other files decide.
--
-- Defines now, op, floor, ceil, max and min for the files after it.
-- Requires: prelude

local now = tonumber(ARGV.now)
if not now then
  local time = redis.call('TIME')
  now = $micros(time)
end
local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min
local op = ARGV.op

-- The keys and arguments of one check of one rule.
define ${STATE} KEYS[1]
define ${RING} KEYS[2]
define ${COST} ARGV[6]
define ${ENFORCED} ARGV[7]
define ${RULE} ARGV[9]
define ${LIMIT} ARGV[10]
define ${WINDOW} ARGV[11]

-- The length of an exact window's five numbers, with a separator after each: see decide/exact.lua.
define ${NUMBERS_LENGTH} 85
define $number(state, start, nth) $column(state, start + nth * 17) + 0

-- An exact window's keys have a TTL of 5/4 of the window. It is therefore enough to renew the TTL
-- once in each quarter of the window.
define $quarter(instant, window) floor(instant * 4 / window)

if op == 'log' then
  local state, rule, cost = redis.call('GET', ${STATE}), ${RULE}, tonumber(${COST})
  local limit, window = tonumber(${LIMIT}), tonumber(${WINDOW})
  local start = state and ${FIRST_RULE} + #rule
  if state and cost <= limit and #state + 1 == start + ${NUMBERS_LENGTH}
      and string.sub(state, ${OFFSET}, start - 1) == ${NO_OFFSET} .. rule then
    local written, edge = $last(state) + 0, now - window
    local head, len = $number(state, start, 0), $number(state, start, 1)
    local size, base, total = $number(state, start, 2), $number(state, start, 3), $number(state, start, 4)

    -- Skips the entries that have left the window since the last call. If there are eight or
    -- more of them, the other files decide.
    local bytes = ''
    if len > 0 and now >= written then
      bytes = redis.call('GETRANGE', ${RING}, head * ${ENTRY_BYTES}, min(head + 8, size) * ${ENTRY_BYTES} - 1)
    end
    local read, ended, oldest, oldest_total = min(len, floor(#bytes / ${ENTRY_BYTES})), 0, nil, base
    while ended < read do
      local from = ended * ${ENTRY_BYTES}
      local a, b, c, d, e, f, g, h, i, j, k = string.byte(bytes, from + 1, from + ${ENTRY_BYTES})
      oldest = $instant(a, b, c, d, e, f, g)
      oldest_total = base + ($total(h, i, j, k) - base) % ${TOTALS}
      if oldest > edge then break end
      ended, base = ended + 1, oldest_total
    end
    local live, over = len - ended, total - base + cost - limit

    -- The cost fits, and the ring has space for another entry and need not shrink.
    if over <= 0 and len > 0 and ended < read and live < size and not $oversized(size, live) then
      head = (head + ended) % size
      total = total + cost
      local entry
      $pack(entry, now, total)
      redis.call('SETRANGE', ${RING}, ((head + live) % size) * ${ENTRY_BYTES}, entry)

      state = string.format('%16d 0\n%s%16d %16d %16d %16d %16d\n', now, rule, head, live + 1, size, base, total)
      if ARGV.now == '' and $quarter(now, window) == $quarter(written, window) then
        redis.call('SET', ${STATE}, state, 'KEEPTTL')
      else
        local ttl = ARGV.now ~= '' and '${TEST_TTL}' or string.format('%d', ceil(window * 5 / 4000))
        redis.call('SET', ${STATE}, state, 'PX', ttl)
        redis.call('PEXPIRE', ${RING}, ttl)
      end
      return {1, 1, limit - (total - base), window, 0}
    end

    -- The cost does not fit now, but fits when the oldest entry leaves the window.
    if over > 0 and ended < read and oldest_total - base >= over then
      local from = ((head + len - 1) % size) * ${ENTRY_BYTES}
      local newest = redis.call('GETRANGE', ${RING}, from, from + ${ENTRY_BYTES} - 1)
      local a, b, c, d, e, f, g = string.byte(newest, 1, 7)
      if g then
        newest = $instant(a, b, c, d, e, f, g)
        return {1 - ${ENFORCED}, 0, max(0, limit - (total - base)), newest + window - now, oldest + window - now}
      end
    end
  end
  op = 'check'
end
