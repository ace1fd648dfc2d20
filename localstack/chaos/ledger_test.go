package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/client"
)

// ledger records the jobs that the API acknowledged and every SQS message of each job.
type ledger struct {
	prefix string
	stop   context.CancelFunc
	wait   sync.WaitGroup

	mu    sync.Mutex
	due   map[string]time.Time
	seen  map[string][]delivery
	kills []time.Time
}

// delivery is a message that a consumer received.
type delivery struct {
	sent    time.Time // the time at which SQS accepted the message
	attempt string
	body    string
}

// open starts a ledger and its consumers.
func open(t *testing.T, prefix string) *ledger {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	run := fmt.Sprintf("%s-%d", prefix, time.Now().UnixMilli()) // each run needs its own IDs
	l := &ledger{prefix: run, stop: stop, due: make(map[string]time.Time), seen: make(map[string][]delivery)}
	for range 2 {
		l.wait.Go(func() { l.consume(ctx) })
	}
	t.Cleanup(func() { l.stop(); l.wait.Wait() })
	return l
}

func (l *ledger) consume(ctx context.Context) {
	url := aws.String(system.QueueURLs["orders"])
	for ctx.Err() == nil {
		out, err := system.SQS.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: url, MaxNumberOfMessages: 10, WaitTimeSeconds: 1, MessageAttributeNames: []string{"All"},
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{
				types.MessageSystemAttributeNameSentTimestamp,
			},
		})
		if err != nil || len(out.Messages) == 0 {
			continue
		}
		var gone []types.DeleteMessageBatchRequestEntry
		l.mu.Lock()
		for i, m := range out.Messages {
			ms, _ := strconv.ParseInt(m.Attributes["SentTimestamp"], 10, 64)
			id := aws.ToString(m.MessageAttributes["sluice-job-id"].StringValue)
			l.seen[id] = append(l.seen[id], delivery{time.UnixMilli(ms),
				aws.ToString(m.MessageAttributes["sluice-attempt"].StringValue), aws.ToString(m.Body)})
			gone = append(gone, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)),
				ReceiptHandle: m.ReceiptHandle})
		}
		l.mu.Unlock()
		_, _ = system.SQS.DeleteMessageBatch(context.WithoutCancel(ctx),
			&sqs.DeleteMessageBatchInput{QueueUrl: url, Entries: gone})
	}
}

// push enqueues n jobs in batches. Their numbers start at first, and their due times are spread
// evenly over the given duration. push retries unacknowledged jobs with the same IDs.
func (l *ledger) push(t *testing.T, first, n int, over time.Duration) {
	t.Helper()
	began := time.Now().Add(500 * time.Millisecond)
	for at := first; at < first+n; at += 250 {
		var batch []client.Job
		for i := at; i < min(at+250, first+n); i++ {
			due := began.Add(over * time.Duration(i-first) / time.Duration(n)).Truncate(time.Millisecond)
			batch = append(batch, client.Job{ID: l.id(i), Payload: map[string]int{"n": i}, RunAt: due})
		}
		l.pushBatch(t, batch)
	}
}

func (l *ledger) id(n int) string { return fmt.Sprintf("%s-%d", l.prefix, n) }

func (l *ledger) pushBatch(t *testing.T, batch []client.Job) {
	t.Helper()
	require.Eventually(t, func() bool {
		pushed, err := api.Queue("orders").PushBatch(t.Context(), batch)
		if err != nil {
			return false
		}
		var again []client.Job
		l.mu.Lock()
		defer l.mu.Unlock()
		for i, p := range pushed {
			if p.Err != nil {
				again = append(again, batch[i])
				continue
			}
			l.due[batch[i].ID] = p.RunAt
		}
		batch = again
		return len(batch) == 0
	}, time.Minute, 20*time.Millisecond)
}

// kill kills every process of the dispatcher.
func (l *ledger) kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	system.Kill("dispatcher")
	l.kills = append(l.kills, time.Now())
}

// missing returns the number of acknowledged jobs whose message has not arrived.
func (l *ledger) missing() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for id := range l.due {
		if len(l.seen[id]) == 0 {
			n++
		}
	}
	return n
}

// drained reports whether every message has arrived: Redis and the outbox hold no pending job, and
// the SQS queue is empty.
func (l *ledger) drained(ctx context.Context) bool {
	s, err := api.Queue("orders").Stats(ctx)
	if err != nil || s.Outbox == nil || s.Scheduled+s.Due+s.Dispatching+*s.Outbox != 0 {
		return false
	}
	visible, hidden := types.QueueAttributeNameApproximateNumberOfMessages,
		types.QueueAttributeNameApproximateNumberOfMessagesNotVisible
	out, err := system.SQS.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: aws.String(system.QueueURLs["orders"]), AttributeNames: []types.QueueAttributeName{visible, hidden},
	})
	return err == nil && out.Attributes[string(visible)] == "0" && out.Attributes[string(hidden)] == "0"
}

// check waits until every job has arrived and the system is drained. Until then, a retry after a
// lost response or an expired claim can still send a duplicate. Then check examines the deliveries.
func (l *ledger) check(t *testing.T, patience time.Duration) {
	t.Helper()
	require.Eventually(t, func() bool {
		return l.missing() == 0
	}, patience, 50*time.Millisecond, "%s: jobs are missing", l.prefix)
	require.Eventually(t, func() bool {
		return l.drained(t.Context())
	}, patience, 200*time.Millisecond, "%s: jobs or messages are left", l.prefix)
	l.mu.Lock()
	defer l.mu.Unlock()
	early, duplicates, unexplained := 0, 0, 0
	for id, due := range l.due {
		deliveries := l.seen[id]
		for _, d := range deliveries {
			if d.sent.Before(due) {
				early++
			}
			require.Equal(t, "1", d.attempt, "%s: a duplicate must have the same attempt number", id)
			require.Equal(t, deliveries[0].body, d.body)
		}
		for i := range deliveries[1:] {
			duplicates++
			if !l.explained(id, deliveries[:i+2]) {
				unexplained++
			}
		}
	}
	faults, _ := json.Marshal(proxy.Counts())
	t.Logf("%s: %d jobs, %d kills, faults %s: 0 lost, %d early, %d duplicates, %d of them unexplained", l.prefix,
		len(l.due), len(l.kills), faults, early, duplicates, unexplained)
	require.Zero(t, early)
	require.Zero(t, unexplained)
	for id := range l.seen {
		require.Contains(t, l.due, id, "a message arrived for a job that the API did not acknowledge")
	}
}

// explained reports whether the last of the given deliveries of a job is a duplicate with a known
// cause. Either the response of SQS was lost, or the dispatcher was killed after SQS accepted the
// message and before Redis recorded it. In both cases the dispatcher sends the attempt again.
func (l *ledger) explained(id string, so []delivery) bool {
	if proxy.Lost(id) >= len(so)-1 {
		return true
	}
	first := so[len(so)-2].sent
	for _, kill := range l.kills {
		if !kill.Before(first.Add(-time.Second)) && kill.Before(first.Add(3*time.Second)) {
			return true
		}
	}
	return false
}
