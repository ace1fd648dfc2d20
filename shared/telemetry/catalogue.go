package telemetry

// Definition describes one metric that a function emits, under the dimension function and those
// named here.
type Definition struct {
	Name       string
	Unit       Unit
	Function   string
	Dimensions []string
	Says       string
}

// Catalogue is every metric of every function. Dashboard, alarms and docs/operations.md are held
// against it, and it against what the functions really print.
func Catalogue() []Definition {
	queue, outcome := []string{"queue"}, []string{"outcome"}
	var out []Definition
	for _, function := range []string{"lock", "enqueue", "limit"} {
		out = append(out,
			Definition{"requests", Count, function, outcome, "calls, by outcome: ok, or the code of the problem"},
			Definition{"latency", Milliseconds, function, outcome, "from the function's start of a call to its answer"})
	}
	return append(out,
		Definition{"lock_wait", Milliseconds, "lock", nil,
			"how long a call with wait_ms waited, whether it got the lock or not"},
		Definition{"lock_hold", Milliseconds, "lock", nil, "from acquire to release"},

		Definition{"enqueued", Count, "enqueue", queue, "jobs taken in"},
		Definition{"degraded", Count, "enqueue", queue, "calls whose jobs went to the outbox because Redis was away"},

		Definition{"allowed", Count, "limit", nil, "decisions that let pass"},
		Definition{"denied", Count, "limit", nil, "decisions that denied"},
		Definition{"shadow_denied", Count, "limit", nil,
			"decisions that would have denied, of policies in shadow mode"},
		Definition{"degraded", Count, "limit", nil, "decisions made without Redis, as on_unavailable says"},

		Definition{"heartbeat", Count, "dispatcher", nil, "one a second while a dispatcher claims from Redis"},
		Definition{"lateness", Milliseconds, "dispatcher", queue, "from a job's run_at to its acceptance by SQS"},
		Definition{"dispatched", Count, "dispatcher", queue, "jobs that SQS accepted"},
		Definition{"returned", Count, "dispatcher", queue,
			"jobs that SQS did not accept, and that wait for another try"},
		Definition{"died", Count, "dispatcher", queue, "jobs that became dead"},
		Definition{"reclaimed", Count, "dispatcher", queue,
			"jobs taken back from a dispatcher that ended without an answer"},
		Definition{"ack_timeouts", Count, "dispatcher", queue, "attempts whose consumer did not ack in time"},
		Definition{"pruned", Count, "dispatcher", queue, "finished jobs forgotten at the end of their time"},
		Definition{"depth", Count, "dispatcher", queue, "jobs that wait for their time"},
		Definition{"oldest_due", Milliseconds, "dispatcher", queue,
			"how long the oldest due job has been due; 0 when there is none"},
		Definition{"dead", Count, "dispatcher", queue, "dead jobs that wait for a redrive"},
		Definition{"outbox", Count, "dispatcher", queue, "jobs in the outbox"},

		Definition{"used_memory", Bytes, "dispatcher", nil, "Redis: memory in use, on the fullest node of a cluster"},
		Definition{"maxmemory", Bytes, "dispatcher", nil, "Redis: the most that may be used, on the same node"},
		Definition{"connected_clients", Count, "dispatcher", nil, "Redis: connections"},
		Definition{"blocked_clients", Count, "dispatcher", nil, "Redis: connections that wait in a blocking command"},
		Definition{"evicted_keys", Count, "dispatcher", nil,
			"Redis: keys evicted since its start; with noeviction always 0"},
		Definition{"instantaneous_ops_per_sec", Count, "dispatcher", nil, "Redis: commands a second"},
	)
}
