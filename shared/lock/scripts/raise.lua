-- Raises the fence of a holder on one node of a quorum. After a majority of nodes has run this
-- script, every later holder gets a higher fence.
--
-- KEYS  1 state   2 leases   3 holders
-- ARGV  1 token   2 fence
-- Reply 1: the fence on this node is at least ARGV.fence   0: the token holds no lease on this node
-- Requires: prelude

local time = redis.call('TIME')
local now = $micros(time)
local token, fence = ARGV.token, ARGV.fence

local state = redis.call('GET', KEYS.state)
if not state or $ends(state) <= now then return 0 end
local kind = $kind(state)
if kind == '${SHARED}' then
  local record = redis.call('HGET', KEYS.holders, token)
  if not record or tonumber(redis.call('ZSCORE', KEYS.leases, token) or 0) <= now then return 0 end
  redis.call('HSET', KEYS.holders, token, string.format('${FENCE_FORMAT}', fence) .. $holder_rest(record))
elseif kind ~= '${EXCLUSIVE}' or not ($owned(state, token)) then
  return 0
end

if $fence(state) + 0 < fence + 0 then
  redis.call('SETRANGE', KEYS.state, ${AT_FENCE}, string.format('${FENCE_FORMAT}', fence))
end
return 1
