-- Makes the caller the newest dispatcher. Its generation is higher than every earlier one, also
-- after a loss of all data, because it is at least the time in ms.
--
-- KEYS  1 given    the generation that was given last
--       2 working  the newest generation whose dispatcher works
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
