-- Makes the caller the newest dispatcher by giving it a new generation. The generation is at least
-- the current time in ms, so it is higher than all earlier generations even if Redis has lost its
-- data.
--
-- KEYS  1 given    the last generation that this script returned
--       2 working  the generation of the latest heartbeat
-- ARGV  none
-- Reply the caller's generation
-- Requires: prelude

define ${TTL} 86400000

local time = redis.call('TIME')
local now = $floor_ms(time)
local given, working = redis.call('GET', KEYS.given), redis.call('GET', KEYS.working)
local last = math.max(tonumber(given or 0), tonumber(working or 0))
local generation = math.max(last + 1, now)
redis.call('SET', KEYS.given, $text(generation), 'PX', ${TTL})
return generation
