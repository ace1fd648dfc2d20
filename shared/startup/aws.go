package startup

import (
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// AWS returns the AWS configuration that Lambda puts into the environment: AWS_REGION,
// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN. The credentials are valid for as
// long as the execution environment lives. If AWS_ENDPOINT_URL is set, it is the endpoint of every
// service, for example the URL of a local AWS emulator.
//
// This method does not use the SDK's own configuration loader. That loader also supports profiles,
// SSO, web identities, containers and instance metadata. The functions need none of them, and their
// code would make up a tenth of a function's binary.
func (e *Env) AWS() aws.Config {
	if e.aws == nil {
		cfg, err := awsConfig(e.getenv)
		if err != nil {
			e.wrong = append(e.wrong, err)
		}
		e.aws = &cfg
	}
	return *e.aws
}

// DynamoDB returns a client with the configuration of [Env.AWS].
func (e *Env) DynamoDB() *dynamodb.Client { return dynamodb.NewFromConfig(e.AWS()) }

func awsConfig(getenv func(string) string) (aws.Config, error) {
	var missing []string
	required := func(variable string) string {
		value := getenv(variable)
		if value == "" {
			missing = append(missing, variable)
		}
		return value
	}
	region, id, secret := required("AWS_REGION"), required("AWS_ACCESS_KEY_ID"), required("AWS_SECRET_ACCESS_KEY")
	switch len(missing) {
	case 0:
	case 1:
		return aws.Config{}, fmt.Errorf("%s is not set; outside of Lambda, set it yourself", missing[0])
	default:
		return aws.Config{}, fmt.Errorf("%s are not set; outside of Lambda, set them yourself",
			strings.Join(missing, " and "))
	}

	cfg := aws.Config{
		Region: region,
		Credentials: aws.NewCredentialsCache(
			credentials.NewStaticCredentialsProvider(id, secret, getenv("AWS_SESSION_TOKEN"))),
	}
	if endpoint := getenv("AWS_ENDPOINT_URL"); endpoint != "" {
		cfg.BaseEndpoint = aws.String(endpoint)
	}
	return cfg, nil
}
