package elasticacheauth

import (
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/sluicehq/sluice/shared/awsenv"
	"github.com/sluicehq/sluice/shared/redisconn"
)

// FromEnv reads through getenv where Redis is (redisconn.ConfigFromEnv) and how to be let in, by
// SLUICE_REDIS_AUTH:
//
//	none (or "")  as the URL says
//	password      SLUICE_REDIS_SECRET_ARN is the secret with the password; SLUICE_REDIS_USER, when set, is whom it is for
//	iam           tokens for SLUICE_REDIS_USER of the cache SLUICE_REDIS_IAM_RESOURCE; SLUICE_REDIS_SERVERLESS is "true" for a serverless one
//
// It calls nothing: a secret is read when the first connection is made.
func FromEnv(getenv func(string) string) (redisconn.Config, error) {
	cfg, err := redisconn.ConfigFromEnv(getenv)
	if err != nil {
		return cfg, err
	}
	switch auth := getenv("SLUICE_REDIS_AUTH"); auth {
	case "", "none":
		return cfg, nil
	case "password":
		arn := getenv("SLUICE_REDIS_SECRET_ARN")
		if arn == "" {
			return cfg,
				errors.New("SLUICE_REDIS_SECRET_ARN is not set: SLUICE_REDIS_AUTH=password needs the ARN of the secret with the password")
		}
		loaded, err := awsenv.Config(getenv)
		if err != nil {
			return cfg, err
		}
		cfg.Credentials = NewSecret(secretsmanager.NewFromConfig(loaded), arn, getenv("SLUICE_REDIS_USER")).Provide
		return cfg, nil
	case "iam":
		loaded, err := awsenv.Config(getenv)
		if err != nil {
			return cfg, err
		}
		return withIAM(cfg, loaded, getenv("SLUICE_REDIS_USER"), getenv("SLUICE_REDIS_IAM_RESOURCE"),
			getenv("SLUICE_REDIS_SERVERLESS") == "true")
	default:
		return cfg, fmt.Errorf("SLUICE_REDIS_AUTH is %q: it must be none, password or iam", auth)
	}
}

// LockNodesFromEnv reads the quorum's nodes: SLUICE_LOCK_NODES lists their URLs, none when it is
// empty. With SLUICE_LOCK_IAM_RESOURCES, which lists the name of each node's cache in the same
// order, connections are made with tokens for SLUICE_LOCK_USER.
func LockNodesFromEnv(getenv func(string) string) ([]redisconn.Config, error) {
	urls, resources := redisconn.SplitList(getenv("SLUICE_LOCK_NODES")),
		redisconn.SplitList(getenv("SLUICE_LOCK_IAM_RESOURCES"))
	nodes := make([]redisconn.Config, len(urls))
	for i, u := range urls {
		nodes[i].URLs = []string{u}
	}
	if len(resources) == 0 {
		return nodes, nil
	}
	if len(resources) != len(urls) {
		return nil, fmt.Errorf("SLUICE_LOCK_IAM_RESOURCES names %d caches, and SLUICE_LOCK_NODES has %d",
			len(resources), len(urls))
	}
	loaded, err := awsenv.Config(getenv)
	if err != nil {
		return nil, err
	}
	for i, resource := range resources {
		if nodes[i], err = withIAM(nodes[i], loaded, getenv("SLUICE_LOCK_USER"), resource, false); err != nil {
			return nil, err
		}
	}
	return nodes, nil
}

func withIAM(cfg redisconn.Config, loaded aws.Config, user, resource string,
	serverless bool) (redisconn.Config, error) {
	if user == "" || resource == "" {
		return cfg,
			errors.New("IAM authentication needs the cache's user and name: SLUICE_REDIS_USER and SLUICE_REDIS_IAM_RESOURCE, or SLUICE_LOCK_USER and SLUICE_LOCK_IAM_RESOURCES")
	}
	cfg.Credentials = IAM{Region: loaded.Region, User: user, Resource: resource, Serverless: serverless,
		Credentials: loaded.Credentials}.Provide
	cfg.MaxConnAge = connectionLife
	return cfg, nil
}
