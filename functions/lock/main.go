// The Lambda function "lock" serves /v1/locks and /v1/semaphores.
package main

import (
	"context"
	"os"

	"github.com/sluicehq/sluice/shared/httpapi"
	"github.com/sluicehq/sluice/shared/lock"
	"github.com/sluicehq/sluice/shared/lock/dynamolock"
	"github.com/sluicehq/sluice/shared/redisconn"
	"github.com/sluicehq/sluice/shared/startup"
)

func main() { os.Exit(startup.Run("lock", build, os.Getenv, os.Stdout, os.Stderr)) }

func build(_ context.Context, env *startup.Env) (any, error) {
	b, err := open(env)
	if err != nil {
		return nil, err
	}
	return httpapi.Lambda(newAPI(b, env.Log, env.Metrics)), nil
}

// open opens the stores that the environment configures.
func open(env *startup.Env) (backends, error) {
	conn, nodes := env.Redis(redisconn.Config{}), env.LockNodes(lock.NodeTimeout)
	var b backends
	if table := env.Get("SLUICE_LOCK_TABLE"); table != "" {
		b.strong = dynamolock.New(env.DynamoDB(), table)
	}
	if err := env.Err(); err != nil {
		return backends{}, err
	}

	b.redis = lock.NewRedis(conn)
	if len(nodes) > 0 {
		quorum, err := lock.NewQuorum(nodes)
		if err != nil {
			return backends{}, err
		}
		b.quorum = quorum
	}
	return b, nil
}
