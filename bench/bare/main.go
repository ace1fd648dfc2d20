// Command bare is the baseline for the time that a Lambda function takes to start. Its handler does
// nothing, but it has the same AWS and Redis clients as Sluice's functions.
package main

import (
	"context"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/redis/go-redis/v9"
)

func main() {
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		os.Exit(1)
	}
	store, queue, table := redis.NewClient(&redis.Options{}), sqs.NewFromConfig(cfg), dynamodb.NewFromConfig(cfg)
	lambda.Start(func(ctx context.Context) (string, error) {
		if store == nil || queue == nil || table == nil {
			return "", ctx.Err()
		}
		return "ok", nil
	})
}
