-- The front of decide.lua, for the commonest checks by far: one key whose rules are all buckets, or are one exact log, and are still those that
-- its state was written with. It decides as the algorithms in decide.lua do, with fewer commands and without making their tables; what it finds
-- otherwise it leaves to them, before it has written anything. See decide.lua for KEYS, ARGV and reply.
local now = tonumber(ARGV[2])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end
local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min
local op = ARGV[1]

if op == 'buckets' then
  local raw, last, offset = redis.call('GET', KEYS[1]), now, 0
  local cost, known, fit, pos = tonumber(ARGV[6]), true, true, 35
  if raw then
    local before = tonumber(string.sub(raw, 1, 16))
    offset = tonumber(string.sub(raw, 18, 33))
    known = before and offset and now + offset >= before -- else it is no state, or the clock was set back
    if known then last = now + offset end
  end
  local reply, debts, ats = {1, 1}, {}, {}
  for p = 9, #ARGV, 5 do
    local rule, limit, burst, tick = ARGV[p], tonumber(ARGV[p + 1]), tonumber(ARGV[p + 3]), tonumber(ARGV[p + 4])
    local w, debt, at = ARGV[p + 2] / tick, 0, last
    if not known then break end
    if raw then
      local from = pos + #rule
      if string.sub(raw, pos, from - 1) ~= rule then
        known = false
        break
      end
      debt, at = tonumber(string.sub(raw, from, from + 15)), tonumber(string.sub(raw, from + 17, from + 32))
      pos = from + 34
      local elapsed = floor((last - at) / tick)
      at = at + elapsed * tick
      if elapsed < debt / limit then debt = min(max(0, debt - elapsed * limit), burst * w) else debt = 0 end
    end
    local over, wait = debt - (burst - cost) * w, 0
    if cost > burst then
      wait, fit = -1, false
    elseif over > 0 then
      wait, fit = ceil(over / limit) * tick - (last - at), false
    end
    local n = #debts + 1
    debts[n], ats[n], reply[3 * n + 2] = debt, at, wait
  end
  if known and (not raw or #raw == pos - 1) then
    local keep, text, n = 0, string.format('%16.0f %16.0f\n', last, offset), 0
    for p = 9, #ARGV, 5 do
      n = n + 1
      local limit, burst, tick = tonumber(ARGV[p + 1]), tonumber(ARGV[p + 3]), tonumber(ARGV[p + 4])
      local w = ARGV[p + 2] / tick
      local debt, at, reset = debts[n], ats[n], 0
      if fit then debt = debt + cost * w end
      if debt > 0 then reset = ceil(debt / limit) * tick - (last - at) end
      keep = max(keep, reset)
      text = text .. ARGV[p] .. string.format('%16.0f %16.0f\n', debt, at)
      reply[3 * n], reply[3 * n + 1] = floor((burst * w - debt) / w), reset
    end
    if fit then
      if ARGV[2] ~= '' then keep = 3600000000 end -- the server's clock is not the caller's
      redis.call('SET', KEYS[1], text, 'PX', string.format('%.0f', ceil(keep / 1000)))
    else
      reply[1], reply[2] = 1 - ARGV[7], 0
    end
    return reply
  end
end

if op == 'log' then
  local raw, rule, cost = redis.call('GET', KEYS[1]), ARGV[9], tonumber(ARGV[6])
  local limit, window = tonumber(ARGV[10]), tonumber(ARGV[11])
  if raw and cost <= limit and #raw == 34 + #rule + 85 and string.sub(raw, 35, 34 + #rule) == rule then
    local last, before = now + string.sub(raw, 18, 33), tonumber(string.sub(raw, 1, 16))
    local from, edge = 35 + #rule, last - window
    local head, len = tonumber(string.sub(raw, from, from + 15)), tonumber(string.sub(raw, from + 17, from + 32))
    local size, base = tonumber(string.sub(raw, from + 34, from + 49)), tonumber(string.sub(raw, from + 51, from + 66))
    local total = tonumber(string.sub(raw, from + 68, from + 83))
    -- The oldest eight entries; which are enough, unless more than that has left the window since the call before.
    local chunk = len > 0 and last >= before and redis.call('GETRANGE', KEYS[2], head * 11, min(head + 8, size) * 11 - 1) or ''
    local count, dead, oldest, sum = min(len, floor(#chunk / 11)), 0, nil, base
    while dead < count do
      local a, b, c, d, e, f, g, h, j, k, l = string.byte(chunk, dead * 11 + 1, dead * 11 + 11)
      oldest = (((((a * 256 + b) * 256 + c) * 256 + d) * 256 + e) * 256 + f) * 256 + g
      sum = base + (((h * 256 + j) * 256 + k) * 256 + l - base) % 4294967296
      if oldest > edge then break end
      dead, base = dead + 1, sum
    end
    local over = total - base + cost - limit
    if over <= 0 and len > 0 and dead < count and len - dead < size and (size <= 64 or (len - dead) * 4 >= size) then
      len, head = len - dead, (head + dead) % size
      total = total + cost
      local t, at = total % 4294967296, last
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
      local t4 = t % 256
      t = (t - t4) / 256
      local t3 = t % 256
      t = (t - t3) / 256
      redis.call('SETRANGE', KEYS[2], ((head + len) % size) * 11,
        string.char(floor(at / 256), at % 256, at3, at4, at5, at6, at7, floor(t / 256), t % 256, t3, t4))
      local ms = string.format('%.0f', ARGV[2] ~= '' and 3600000 or ceil(window / 1000))
      redis.call('SET', KEYS[1], string.format('%16.0f %16.0f\n%s%16.0f %16.0f %16.0f %16.0f %16.0f\n',
        last, last - now, rule, head, len + 1, size, base, total), 'PX', ms)
      redis.call('PEXPIRE', KEYS[2], ms)
      return {1, 1, limit - (total - base), window, 0}
    end
    if over > 0 and dead < count and sum - base >= over then -- the oldest live entry makes room enough when it leaves
      local newest = string.sub(redis.call('GETRANGE', KEYS[2], ((head + len - 1) % size) * 11, ((head + len - 1) % size) * 11 + 10), 1, 7)
      if #newest == 7 then
        local a, b, c, d, e, f, g = string.byte(newest, 1, 7)
        newest = (((((a * 256 + b) * 256 + c) * 256 + d) * 256 + e) * 256 + f) * 256 + g
        return {1 - ARGV[7], 0, max(0, limit - (total - base)), newest + window - last, oldest + window - last}
      end
    end
  end
end
if op == 'buckets' or op == 'log' then op = 'check' end

