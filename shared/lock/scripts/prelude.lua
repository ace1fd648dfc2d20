-- Definitions for the lock scripts: the state of a lock and the record of a shared holder.
--
-- A lock or semaphore has up to five keys, all under one hash tag:
--   state    a string: fixed columns, then the record of the exclusive holder or the last holder
--   leases   zset: token of a shared holder → end of its lease, µs
--   holders  hash: token of a shared holder → fence, acquired µs, "<call>\n<owner>\n<metadata>"
--   queue    zset: call of a waiter → its arrival, µs
--   beats    zset: call of a waiter → end of its heartbeat, µs
--
-- The columns of a state:
--   1      waiting   1 if the queue may contain waiters, otherwise 0
--   2      kind      X held exclusively, S shared, F released, D released by force
--   3-12   length    µs between "since" and the end of the lease; for S, of the longest lease
--   13-28  since     µs: time of the last grant, renewal or release that left other holders
--   29-44  fence     the last fence that was granted
--   45-60  acquired  µs, only for X
--   61-    record    "<token>\n<call>\n<owner>\n<metadata>", for X
--
-- A Redis at maxmemory refuses a script's first write if that command can need memory (SET, ZADD,
-- SETRANGE). It accepts PEXPIRE, and it accepts every write after the first. So a script that must
-- succeed at maxmemory calls PEXPIRE first.

define ${EXCLUSIVE} X
define ${SHARED} S
define ${FREE} F
define ${FORCED} D

define $waiting(state) string.sub(state, 1, 1) == '1'
define $kind(state) string.sub(state, 2, 2)
define $flags(state) string.sub(state, 1, 2)
define $after_kind(state) string.sub(state, 3)
define $ends(state) string.sub(state, 3, 12) + string.sub(state, 13, 28)
define $fence(state) string.sub(state, 29, 44)
define $acquired(state) string.sub(state, 45, 60)
define $record(state) string.sub(state, 61)
define $public(state) string.match(state, '^[^\n]+\n[^\n]+\n(.*)$', 61)
define $columns(state) string.sub(state, 1, 60)
define $unheld(state) #state == 60
define $owned(state, token) string.sub(state, 61, 61 + #token) == token .. '\n'
define $owned_by(state, proof) string.sub(state, 61, 60 + #proof) == proof

-- Offsets for SETRANGE, which counts from 0.
define ${AT_WAITING} 0
define ${AT_KIND} 1
define ${AT_LEASE} 2
define ${AT_FENCE} 28
define ${AT_RECORD} 60

-- A length has 10 columns; a time and a fence have 16.
define ${LEASE_FORMAT} %10.0f%016.0f
define ${FENCE_FORMAT} %016.0f

-- The record of a shared holder: fence, acquired, and the label "<call>\n<owner>\n<metadata>".
define $holder_fence(record) string.sub(record, 1, 16)
define $holder_acquired(record) string.sub(record, 17, 32)
define $holder_rest(record) string.sub(record, 17)
define $holder_owner(record) string.match(record, '^[^\n]+\n([^\n]*)', 33)
define $holder_public(record) string.match(record, '^[^\n]+\n(.*)$', 33)
define $holder_unnamed(record) string.match(record, '^[^\n]+(\n.*)$', 33)
define $holder_called(record, call) string.sub(record, 33, 33 + #call) == call .. '\n'

-- The server's time in µs, from the reply of TIME.
define $micros(time) time[1] * 1000000 + time[2]

define $text(n) string.format('%.0f', n)

-- Wakes the first live waiter. Waiters also poll, so a lost wake-up only delays the waiter.
define $wake_first(state_key, queue, beats, now)
  for _, id in ipairs(redis.call('ZRANGE', queue, 0, 9)) do
    if tonumber(redis.call('ZSCORE', beats, id) or 0) > now then
      redis.call('PUBLISH', state_key, id)
      break
    end
  end
