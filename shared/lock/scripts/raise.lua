-- Raises the fence of what a token holds, so that a quorum's next holder gets a higher one wherever it asks.
--
-- KEYS  1 state   2 leases   3 holders (see acquire.lua)
-- ARGV  1 token   2 fence
-- Reply 1 the fence is at least that   0 the token holds nothing here
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local token, fence = ARGV[1], ARGV[2]
local state = redis.call('GET', KEYS[1])
if not state or string.sub(state, 3, 12) + string.sub(state, 13, 28) <= now then return 0 end
local kind = string.sub(state, 2, 2)
if kind == 'S' then
  local record = redis.call('HGET', KEYS[3], token)
  if not record or tonumber(redis.call('ZSCORE', KEYS[2], token) or 0) <= now then return 0 end
  redis.call('HSET', KEYS[3], token, string.format('%016.0f', fence) .. string.sub(record, 17))
elseif kind ~= 'X' or string.sub(state, 61, 61 + #token) ~= token .. '\n' then
  return 0
end
if string.sub(state, 29, 44) + 0 < fence + 0 then redis.call('SETRANGE', KEYS[1], 28, string.format('%016.0f', fence)) end
return 1
