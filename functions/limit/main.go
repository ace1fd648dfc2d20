// The function limit answers /v1/limits, /v1/policies and /v1/health, and is API Gateway's REQUEST
// authorizer.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluicehq/sluice/shared/awsenv"
	"github.com/sluicehq/sluice/shared/policy"
	"github.com/sluicehq/sluice/shared/policy/dynamopolicy"
	"github.com/sluicehq/sluice/shared/ratelimit"
	"github.com/sluicehq/sluice/shared/redisconn"
	"github.com/sluicehq/sluice/shared/redisconn/elasticacheauth"
	"github.com/sluicehq/sluice/shared/telemetry"
)

func main() {
	redisconn.SilenceDriver()
	if err := run(context.Background(), os.Getenv, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "limit:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, getenv func(string) string, out io.Writer) error {
	cfg, err := elasticacheauth.FromEnv(getenv)
	if err != nil {
		return err
	}
	conn, err := redisconn.Open(cfg)
	if err != nil {
		return err
	}
	table := getenv("SLUICE_POLICY_TABLE")
	if table == "" {
		return errors.New("SLUICE_POLICY_TABLE is not set: give the name of the DynamoDB table of the policies")
	}
	aws, err := awsenv.Config(getenv)
	if err != nil {
		return err
	}
	store := dynamopolicy.New(dynamodb.NewFromConfig(aws), table)
	log, metrics := telemetry.FromEnv(getenv, out, "limit")
	a := &api{
		limiter: ratelimit.New(ctx, ratelimit.NewRedis(conn)), store: store,
		cache:  policy.NewCache(store, policy.CacheConfig{}),
		doctor: newDoctor(conn, store), log: log, metrics: metrics,
		authorizer: authorizerConfig{Policy: getenv("SLUICE_AUTHORIZER_POLICY"), Key: getenv("SLUICE_AUTHORIZER_KEY")},
	}
	lambda.StartWithOptions(a.lambda(a.routes()), lambda.WithContext(ctx))
	return nil
}
