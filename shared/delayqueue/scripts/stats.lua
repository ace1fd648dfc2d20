-- Counts the jobs of one shard, without scanning them.
--
-- KEYS  1 due   2 leased   3 awaiting   4 dead   5 paused
-- ARGV  none
-- Reply {scheduled jobs that are not due, due jobs, jobs that are being dispatched, jobs that await
--       their ack, dead jobs, ms since the oldest due job became due or 0, 1 if the queue is
--       paused | 0}
-- Requires: prelude

local time = redis.call('TIME')
local now = $floor_ms(time)
local due = redis.call('ZCOUNT', KEYS.due, '-inf', now)
local oldest = $first_due()
local pause_end = redis.call('GET', KEYS.paused)
local paused = pause_end and (tonumber(pause_end) == 0 or tonumber(pause_end) > now)
return {
  redis.call('ZCARD', KEYS.due) - due, due, redis.call('ZCARD', KEYS.leased),
  redis.call('ZCARD', KEYS.awaiting), redis.call('ZCARD', KEYS.dead),
  oldest and math.max(0, now - oldest) or 0, paused and 1 or 0,
}
