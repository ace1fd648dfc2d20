-- Makes the caller the newest dispatcher.
--
-- KEYS  1 the last generation given out   2 the newest that is at work
-- Reply the caller's generation, which is higher than every one before, also when Redis has lost them: it is at least the time in ms
local time = redis.call('TIME')
local now = math.floor((time[1] * 1000000 + time[2]) / 1000)
local last = math.max(tonumber(redis.call('GET', KEYS[1]) or 0), tonumber(redis.call('GET', KEYS[2]) or 0))
local generation = math.max(last + 1, now)
redis.call('SET', KEYS[1], string.format('%.0f', generation), 'PX', 86400000)
return generation
