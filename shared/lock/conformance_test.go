package lock_test

import (
	"testing"

	"github.com/sluicehq/sluice/localstack/redistest"
	"github.com/sluicehq/sluice/shared/internal/locktest"
	"github.com/sluicehq/sluice/shared/lock"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		onEachRedis(t, func(t *testing.T, _ *redistest.Redis, s *lock.Redis) { locktest.Run(t, s) })
	})

	t.Run("quorum", func(t *testing.T) {
		t.Parallel()
		q, _ := openQuorum(t, patient)
		locktest.Run(t, q)
		locktest.RunWithoutSemaphores(t, q)
	})
}
