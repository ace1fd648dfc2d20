package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/client"
)

func TestJobs(t *testing.T) {
	t.Parallel()
	t.Run("push, get, reschedule and cancel", func(t *testing.T) {
		t.Parallel()
		id := name("job")
		out := does(t, "jobs", "push", "orders", `{"order": 42}`, "--delay", "2d", "--id", id, "--max-attempts", "3",
			"--header", "tenant=gold", "--header", "query=a=1,b=2")
		require.Regexp(t, `^`+id+` is scheduled, due \d{4}-\d\d-\d\d \d\d:\d\d:\d\d \(in (2d|1d23h)\)\n$`, out)

		again, errOut, code := sluice(t, "jobs", "push", "orders", `{"order": 43}`, "--id", id)
		require.Zero(t, code)
		require.Contains(t, again, id)
		require.Contains(t, errOut, "and a different payload already exists; nothing was enqueued")

		out = does(t, "jobs", "get", "orders", id)
		require.Regexp(t, `(?m)^state +scheduled\nattempt +0 of 3\ndue .*\n`+
			`header +query=a=1,b=2\nheader +tenant=gold\npayload +\{"order": ?42\}$`, out)
		does(t, "jobs", "reschedule", "orders", id, "--delay", "1h", "--payload", `"new"`)
		var j client.JobInfo
		require.NoError(t, json.Unmarshal([]byte(does(t, "jobs", "get", "orders", id, "--json")), &j))
		require.JSONEq(t, `"new"`, string(j.Payload))
		require.InDelta(t, time.Hour.Seconds(), time.Until(j.RunAt).Seconds(), patience.Seconds())

		require.Equal(t, id+" is canceled\n", does(t, "jobs", "cancel", "orders", id))
		_, errOut, code = sluice(t, "jobs", "reschedule", "orders", id, "--run-at", "5m")
		require.Equal(t, 3, code)
		require.Contains(t, errOut, "a job that is canceled")
		_, _, code = sluice(t, "jobs", "get", "orders", name("unknown"))
		require.Equal(t, 4, code)
	})

	t.Run("push reads standard input", func(t *testing.T) {
		t.Parallel()
		out, errOut, code := piped(t, "{\"order\": 1}\n", "jobs", "push", "quiet", "--delay", "1h", "--json")
		require.Zero(t, code, errOut)
		var receipt client.Receipt
		require.NoError(t, json.Unmarshal([]byte(out), &receipt))
		require.Equal(t, client.JobScheduled, receipt.State)

		var lines strings.Builder
		for range 600 {
			lines.WriteString("{\"n\": 1}\n\n")
		}
		out, errOut, code = piped(t, lines.String(), "jobs", "push", "quiet", "--lines", "--delay", "1h")
		require.Zero(t, code, errOut)
		require.Equal(t, "600 of 600 jobs were enqueued\n", out)

		_, errOut, code = piped(t, "{}\n{\n", "jobs", "push", "quiet", "--lines")
		require.Equal(t, 2, code)
		require.Equal(t, "sluice: line 2 is not JSON; nothing was pushed\n", errOut)

		out, errOut, code = piped(t, "1\n2\n", "jobs", "push", "quiet", "--lines", "--max-attempts", "101")
		require.Equal(t, 2, code)
		require.Equal(t, "0 of 2 jobs were enqueued\n", out)
		require.Contains(t, errOut, "2 jobs failed, the first one: ")
		require.Contains(t, errOut, "max_attempts: must be 1 to 100")
	})

	t.Run("list prints one page, and with --all --json all pages as one JSON object", func(t *testing.T) {
		t.Parallel()
		for range 3 {
			does(t, "jobs", "push", "pay.fifo", "1", "--delay", "1h", "--group", "g", "-q")
		}
		out, errOut, code := sluice(t, "jobs", "list", "pay.fifo", "--state", "scheduled", "--limit", "2")
		require.Zero(t, code, errOut)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		require.Regexp(t, `^ID +STATE +ATTEMPT +DUE +LAST ERROR$`, lines[0])
		require.Regexp(t, `scheduled +0/1  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d \(in `, lines[1])
		require.NotContains(t, out, "\x1b", "colours are for terminals only")
		cursor, found := strings.CutPrefix(strings.TrimSpace(errOut), "next page: --cursor ")
		require.True(t, found)
		does(t, "jobs", "list", "pay.fifo", "--state", "scheduled", "--limit", "2", "--cursor", cursor)

		var page client.JobPage
		require.NoError(t, json.Unmarshal([]byte(does(t, "jobs", "list", "pay.fifo", "--all", "--json")), &page))
		require.GreaterOrEqual(t, len(page.Jobs), 3)

		_, errOut, code = sluice(t, "jobs", "list", "orders", "--state", "done")
		require.Equal(t, 2, code)
		require.Contains(t, errOut, "state: must be one of scheduled")
	})

	t.Run("stats, pause and resume", func(t *testing.T) {
		t.Parallel()
		out := does(t, "jobs", "stats")
		require.Regexp(t, `(?m)^QUEUE +SCHEDULED +DUE +DISPATCHING +AWAITING ACK +DEAD +OUTBOX +OLDEST DUE$`, out)
		require.Regexp(t, `(?m)^orders +\d+ +\d+ `, out)
		require.Contains(t, does(t, "jobs", "pause", "pay.fifo", "--until", "2h"), "paused")
		require.NotContains(t, does(t, "jobs", "resume", "pay.fifo"), "paused")
		var stats client.QueueStats
		require.NoError(t, json.Unmarshal([]byte(does(t, "jobs", "stats", "orders", "--json")), &stats))
		require.Equal(t, "orders", stats.Name)
		_, errOut, code := sluice(t, "jobs", "stats", "unknown")
		require.Equal(t, 4, code)
		require.Contains(t, errOut, `sluice: error counting the jobs of the queue "unknown": `)
	})

	t.Run("ack, nack and redrive", func(t *testing.T) {
		t.Parallel()
		q := connect(t).Queue("orders")
		awaiting := func(id string, attempt int) {
			require.Eventually(t, func() bool {
				j, err := q.Get(t.Context(), id)
				return err == nil && j.State == client.JobAwaitingAck && j.Attempt == attempt
			}, patience, 20*time.Millisecond)
		}
		done, bad := name("job"), name("job")
		does(t, "jobs", "push", "orders", "1", "--id", done, "--max-attempts", "2", "--ack-timeout", "5m")
		does(t, "jobs", "push", "orders", "1", "--id", bad, "--max-attempts", "2", "--ack-timeout", "5m")
		awaiting(done, 1)
		require.Equal(t, done+" is succeeded\n", does(t, "jobs", "ack", "orders", done, "1"))
		awaiting(bad, 1)
		require.Contains(t, does(t, "jobs", "nack", "orders", bad, "1", "--error", "no stock", "--delay", "0"),
			bad+" is scheduled, due ")
		awaiting(bad, 2)
		require.Equal(t, bad+" is dead\n", does(t, "jobs", "nack", "orders", bad, "2", "--error", "still no stock"))
		require.Contains(t, does(t, "jobs", "get", "orders", bad), "last error  still no stock")
		require.Equal(t, "scheduled again: 1\n", does(t, "jobs", "redrive", "orders", bad))
		_, errOut, code := sluice(t, "jobs", "ack", "orders", bad, "first")
		require.Equal(t, 2, code)
		require.Contains(t, errOut, "the attempt must be a number, 1 or greater")
	})
}
