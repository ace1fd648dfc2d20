package startup

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/delayqueue"
)

func TestQueueConfig(t *testing.T) {
	t.Parallel()

	t.Run("reads the variables", func(t *testing.T) {
		t.Parallel()
		env := environment(map[string]string{
			"SLUICE_QUEUE_SHARDS": "8", "SLUICE_DEDUP_WINDOW_MS": "1000", "SLUICE_DEAD_RETENTION_MS": "86400000",
		})
		require.Equal(t, delayqueue.Config{Shards: 8, DedupWindow: time.Second, DeadRetention: day}, env.QueueConfig())
		require.Zero(t, environment(nil).QueueConfig(), "nothing is set")
		require.NoError(t, env.Err())
	})

	t.Run("refuses values outside of the range", func(t *testing.T) {
		t.Parallel()
		for name, values := range map[string][]string{
			"SLUICE_QUEUE_SHARDS":      {"0", "257", "-1", "four", "4.5", "99999999999999999999"},
			"SLUICE_DEDUP_WINDOW_MS":   {"999", "604800001"},
			"SLUICE_DEAD_RETENTION_MS": {"999", "31622400001"},
		} {
			for _, value := range values {
				env := environment(map[string]string{name: value})
				env.QueueConfig()
				require.ErrorContains(t, env.Err(), name+` is "`+value+`"; give a whole number from `)
			}
		}
	})
}

func TestQueueURLs(t *testing.T) {
	t.Parallel()

	t.Run("reads the object", func(t *testing.T) {
		t.Parallel()
		env := environment(map[string]string{"SLUICE_QUEUES": `{"orders": "https://sqs.test/1/orders"}`})
		require.Equal(t, map[string]string{"orders": "https://sqs.test/1/orders"}, env.QueueURLs())
		require.NoError(t, env.Err())
	})

	for text, want := range map[string]string{
		"":                    `SLUICE_QUEUES is not set; give a JSON object such as {"orders": "https://sqs.`,
		"orders":              "SLUICE_QUEUES is not a JSON object of names and URLs: ",
		`["orders"]`:          "SLUICE_QUEUES is not a JSON object of names and URLs: ",
		`{"or ders": "u"}`:    `SLUICE_QUEUES has a queue named "or ders"; a name must start with a letter or digit`,
		`{"b": "u", "a": ""}`: `SLUICE_QUEUES has no URL for the queue "a"; give the URL of its SQS queue`,
	} {
		t.Run("refuses "+text, func(t *testing.T) {
			t.Parallel()
			env := environment(map[string]string{"SLUICE_QUEUES": text})
			env.QueueURLs()
			require.ErrorContains(t, env.Err(), want)
		})
	}
}
