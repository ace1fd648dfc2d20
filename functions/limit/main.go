// The Lambda function "limit" serves /v1/limits, /v1/policies and /v1/health. It can also be the
// REQUEST authorizer of an API Gateway.
package main

import (
	"context"
	"os"

	"github.com/sluicehq/sluice/shared/policy"
	"github.com/sluicehq/sluice/shared/policy/dynamopolicy"
	"github.com/sluicehq/sluice/shared/ratelimit"
	"github.com/sluicehq/sluice/shared/redisconn"
	"github.com/sluicehq/sluice/shared/startup"
)

func main() { os.Exit(startup.Run("limit", build, os.Getenv, os.Stdout, os.Stderr)) }

func build(ctx context.Context, env *startup.Env) (any, error) {
	conn := env.Redis(redisconn.Config{})
	dynamo, table := env.DynamoDB(), env.Table("SLUICE_POLICY_TABLE", "policies")
	if err := env.Err(); err != nil {
		return nil, err
	}

	store := dynamopolicy.New(dynamo, table)
	a := &api{
		limiter: ratelimit.New(ctx, conn),
		store:   store,
		cache:   policy.NewCache(store, policy.CacheConfig{}),
		checker: newHealthChecker(conn, store),
		log:     env.Log,
		metrics: env.Metrics,
		authorizer: authorizerConfig{
			Policy: env.Get("SLUICE_AUTHORIZER_POLICY"),
			Key:    env.Get("SLUICE_AUTHORIZER_KEY"),
		},
	}
	return a.lambda(a.routes()), nil
}
