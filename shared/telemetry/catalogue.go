package telemetry

// Definition describes one metric of a function.
type Definition struct {
	Name     string
	Unit     Unit
	Function string
	// Dimensions lists the dimensions other than "function".
	Dimensions []string
	// Description is a phrase for operators.
	Description string
}

// Catalogue returns every metric of every function. Tests compare it with the dashboard, the
// alarms, docs/operations.md and the metrics that the functions print.
func Catalogue() []Definition {
	queue, outcome := []string{"queue"}, []string{"outcome"}
	var out []Definition
	for _, function := range []string{"lock", "enqueue", "limit"} {
		out = append(out,
			Definition{"requests", Count, function, outcome, "calls; the outcome is ok or the code of the problem"},
			Definition{"latency", Milliseconds, function, outcome, "time from the start of the handler to its answer"})
	}
	return append(out,
		Definition{"lock_wait", Milliseconds, "lock", nil,
			"time that an acquire with wait_ms waited, whether or not it got the lock"},
		Definition{"lock_hold", Milliseconds, "lock", nil, "time from acquire to release"},

		Definition{"enqueued", Count, "enqueue", queue, "jobs accepted"},
		Definition{"degraded", Count, "enqueue", queue,
			"calls whose jobs went to the outbox because Redis was unavailable"},

		Definition{"allowed", Count, "limit", nil, "checks that were allowed"},
		Definition{"denied", Count, "limit", nil, "checks that were denied"},
		Definition{"shadow_denied", Count, "limit", nil,
			"decisions of policies in shadow mode that would have denied"},
		Definition{"degraded", Count, "limit", nil, "decisions made without Redis, according to on_unavailable"},

		Definition{"heartbeat", Count, "dispatcher", nil, "one per second while a dispatcher claims from Redis"},
		Definition{"lateness", Milliseconds, "dispatcher", queue, "time from a job's run_at to its acceptance by SQS"},
		Definition{"dispatched", Count, "dispatcher", queue, "jobs that SQS accepted"},
		Definition{"returned", Count, "dispatcher", queue, "jobs that SQS did not accept; they are retried"},
		Definition{"died", Count, "dispatcher", queue, "jobs that became dead"},
		Definition{"reclaimed", Count, "dispatcher", queue,
			"jobs requeued because the lease of their claim ended"},
		Definition{"ack_timeouts", Count, "dispatcher", queue, "attempts not acknowledged in time"},
		Definition{"pruned", Count, "dispatcher", queue, "finished jobs deleted after their retention"},
		Definition{"depth", Count, "dispatcher", queue, "pending jobs"},
		Definition{"oldest_due", Milliseconds, "dispatcher", queue,
			"age of the oldest due job; 0 if no job is due"},
		Definition{"dead", Count, "dispatcher", queue, "dead jobs"},
		Definition{"outbox", Count, "dispatcher", queue, "jobs in the outbox"},

		Definition{"used_memory", Bytes, "dispatcher", nil, "Redis: memory in use, on the fullest node of a cluster"},
		Definition{"maxmemory", Bytes, "dispatcher", nil, "Redis: memory limit of the same node"},
		Definition{"connected_clients", Count, "dispatcher", nil, "Redis: connections"},
		Definition{"blocked_clients", Count, "dispatcher", nil, "Redis: connections in a blocking command"},
		Definition{"evicted_keys", Count, "dispatcher", nil,
			"Redis: keys evicted since the start of the server; always 0 with noeviction"},
		Definition{"instantaneous_ops_per_sec", Count, "dispatcher", nil, "Redis: commands per second"},
	)
}
