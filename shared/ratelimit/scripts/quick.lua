-- The front of decide.lua, for one key whose only rule is an exact log, and still that which its state was written with. It decides as decide.lua
-- does, with fewer commands and without making its tables; what it finds otherwise it leaves to that, before it has written anything. See
-- decide.lua for KEYS, ARGV and reply.
local now = tonumber(ARGV[2])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end
local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min
local op = ARGV[1]

if op == 'log' then
  local raw, rule, cost = redis.call('GET', KEYS[1]), ARGV[9], tonumber(ARGV[6])
  local limit, window = tonumber(ARGV[10]), tonumber(ARGV[11])
  if raw and cost <= limit and #raw == 19 + #rule + 85 and string.sub(raw, 17, 19 + #rule) == ' 0\n' .. rule then
    local sub, last, from = string.sub, now, 20 + #rule
    local before, edge = sub(raw, 1, 16) + 0, last - window
    local head, len = sub(raw, from, from + 15) + 0, sub(raw, from + 17, from + 32) + 0
    local size, base = sub(raw, from + 34, from + 49) + 0, sub(raw, from + 51, from + 66) + 0
    local total = sub(raw, from + 68, from + 83) + 0
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
      local state = string.format('%16d 0\n%s%16d %16d %16d %16d %16d\n', last, rule, head, len + 1, size, base, total)
      if ARGV[2] == '' and floor(last * 4 / window) == floor(before * 4 / window) then
        redis.call('SET', KEYS[1], state, 'KEEPTTL') -- the first call of this quarter gave it enough for all of them
      else
        local ms = ARGV[2] ~= '' and '3600000' or string.format('%d', ceil(window * 5 / 4000))
        redis.call('SET', KEYS[1], state, 'PX', ms)
        redis.call('PEXPIRE', KEYS[2], ms)
      end
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
if op == 'log' then op = 'check' end

