package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReplaced(t *testing.T) {
	t.Parallel()
	t.Run("returns the page unchanged while it is up to date", func(t *testing.T) {
		t.Parallel()
		page, err := os.ReadFile("../../docs/cost.md")
		require.NoError(t, err)
		now, err := replaced(string(page))
		require.NoError(t, err)
		require.Equal(t, now, string(page), "prices, assumptions or metrics have changed: go run ./tools/cost -update")
	})
}

func TestModel(t *testing.T) {
	t.Parallel()
	t.Run("agrees with published figures", func(t *testing.T) {
		t.Parallel()
		require.InDelta(t, 8.64*overlap, lambda(1, hours*3600*overlap), 0.01, "a function of 256 MB that is always on")
		perMillion := bill{{"", 0}}
		for _, i := range jobs(million, 10) {
			if strings.HasPrefix(i.name, "SQS") {
				perMillion[0].dollars = i.dollars
			}
		}
		require.InDelta(t, 0.12, perMillion.total(), 0.001, "SQS in batches of ten: send, receive, delete")
		require.InDelta(t, 6.05, serverlessPerGBHour*serverlessLeastGB*hours, 0.01, "the minimum cost of Serverless")
		require.Zero(t, scheduler(10*million), "the first 14 million of EventBridge Scheduler are free")
		require.InDelta(t, 86, scheduler(100*million), 0.001)
		require.InDelta(t, 1000, qstash(100*million), 0.001)
	})

	t.Run("includes every alarm of the module", func(t *testing.T) {
		t.Parallel()
		text, err := os.ReadFile("../../terraform/module/alarms.tf")
		require.NoError(t, err)
		single := strings.Count(string(text), "\n      \"")
		queued := strings.Count(string(text), "for name in keys(var.queues)")
		function := strings.Count(string(text), "for name, f in local.functions")
		computed := strings.Count(string(text), "\n    \"redis-")
		require.Equal(t, alarms, single+queued*queues+function*4+1+computed, "%d, %d, %d, %d", single, queued, function,
			computed)
	})
}
