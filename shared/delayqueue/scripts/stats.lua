-- Counts one shard; nothing is scanned.
--
-- KEYS  1 due  2 leased  3 awaiting  4 dead  5 paused
-- Reply {scheduled and not due, due, dispatching, awaiting ack, dead, ms since the oldest is due or 0, paused 0|1}
local time = redis.call('TIME')
local now = math.floor((time[1] * 1000000 + time[2]) / 1000)
local due = redis.call('ZCOUNT', KEYS[1], '-inf', now)
local oldest = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]
local paused = redis.call('GET', KEYS[5])
local stopped = paused and (tonumber(paused) == 0 or tonumber(paused) > now)
return {
  redis.call('ZCARD', KEYS[1]) - due, due, redis.call('ZCARD', KEYS[2]), redis.call('ZCARD', KEYS[3]), redis.call('ZCARD', KEYS[4]),
  oldest and math.max(0, now - oldest) or 0, stopped and 1 or 0,
}
