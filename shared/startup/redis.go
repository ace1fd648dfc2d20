package startup

import (
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/sluicehq/sluice/shared/internal/elasticacheauth"
	"github.com/sluicehq/sluice/shared/redisconn"
)

// Redis returns a connection to the deployment's Redis. The argument cfg can set the timeouts and
// the pool size. Its other fields come from the environment. SLUICE_REDIS_URL and
// SLUICE_REDIS_CLUSTER give the address. SLUICE_REDIS_AUTH selects the authentication:
//
//	none      the user and the password of the URL; the default
//	password  the password in the secret SLUICE_REDIS_SECRET_ARN, and the user SLUICE_REDIS_USER
//	          or, if that is not set, the user in the secret
//	iam       IAM tokens for SLUICE_REDIS_USER and the cache SLUICE_REDIS_IAM_RESOURCE, which is
//	          serverless if SLUICE_REDIS_SERVERLESS is true
//
// Redis makes no network call: the first use of the connection connects and reads the secret.
func (e *Env) Redis(cfg redisconn.Config) *redisconn.Conn {
	return e.open("SLUICE_REDIS_URL", e.redisConfig(cfg))
}

func (e *Env) redisConfig(cfg redisconn.Config) redisconn.Config {
	cfg.URLs = redisconn.SplitList(e.getenv("SLUICE_REDIS_URL"))
	if len(cfg.URLs) == 0 {
		e.refuse("SLUICE_REDIS_URL is not set; give a redis:// or rediss:// URL")
	}
	cfg.Cluster = e.flag("SLUICE_REDIS_CLUSTER")

	switch auth := e.getenv("SLUICE_REDIS_AUTH"); auth {
	case "", "none":
	case "password":
		arn := e.required("SLUICE_REDIS_SECRET_ARN",
			"SLUICE_REDIS_AUTH=password needs the ARN of the secret with the password")
		secrets := secretsmanager.NewFromConfig(e.AWS())
		cfg.Credentials = elasticacheauth.NewSecret(secrets, arn, e.getenv("SLUICE_REDIS_USER")).Provide
	case "iam":
		e.useIAM(&cfg, elasticacheauth.IAM{
			User: e.required("SLUICE_REDIS_USER", "SLUICE_REDIS_AUTH=iam needs the name of the ElastiCache user"),
			Resource: e.required("SLUICE_REDIS_IAM_RESOURCE",
				"SLUICE_REDIS_AUTH=iam needs the name of the replication group or serverless cache"),
			Serverless: e.flag("SLUICE_REDIS_SERVERLESS"),
		})
	default:
		e.refuse("SLUICE_REDIS_AUTH is %q; give none, password or iam", auth)
	}
	return cfg
}

// LockNodes returns a connection to each node of the quorum. SLUICE_LOCK_NODES lists the URLs of
// the nodes. If it is empty, there is no quorum, and LockNodes returns nil. If
// SLUICE_LOCK_IAM_RESOURCES is set, it lists the cache names of the nodes in the same order, and
// the connections authenticate with IAM tokens for SLUICE_LOCK_USER. If it is empty, they use the
// passwords in the URLs.
func (e *Env) LockNodes(callTimeout time.Duration) []*redisconn.Conn {
	var nodes []*redisconn.Conn
	for i, cfg := range e.lockNodeConfigs() {
		cfg.CallTimeout = callTimeout
		nodes = append(nodes, e.open(fmt.Sprintf("SLUICE_LOCK_NODES, URL %d", i+1), cfg))
	}
	return nodes
}

func (e *Env) lockNodeConfigs() []redisconn.Config {
	urls := redisconn.SplitList(e.getenv("SLUICE_LOCK_NODES"))
	nodes := make([]redisconn.Config, len(urls))
	for i, url := range urls {
		nodes[i].URLs = []string{url}
	}
	resources := redisconn.SplitList(e.getenv("SLUICE_LOCK_IAM_RESOURCES"))
	if len(resources) == 0 {
		return nodes
	}
	if len(resources) != len(urls) {
		e.refuse("SLUICE_LOCK_IAM_RESOURCES lists %d caches and SLUICE_LOCK_NODES lists %d URLs; "+
			"give one cache for each URL, in the same order", len(resources), len(urls))
		return nil
	}
	user := e.required("SLUICE_LOCK_USER", "SLUICE_LOCK_IAM_RESOURCES needs the name of the ElastiCache user")
	for i, resource := range resources {
		e.useIAM(&nodes[i], elasticacheauth.IAM{User: user, Resource: resource})
	}
	return nodes
}

// useIAM configures authentication with IAM tokens, which the function signs with its own
// credentials.
func (e *Env) useIAM(cfg *redisconn.Config, iam elasticacheauth.IAM) {
	loaded := e.AWS()
	iam.Region, iam.Credentials = loaded.Region, loaded.Credentials
	cfg.Credentials, cfg.MaxConnAge = iam.Provide, elasticacheauth.MaxConnAge
}

// open opens a connection, or returns nil if e already has an error. In error messages, source
// names the variable that holds the URLs.
func (e *Env) open(source string, cfg redisconn.Config) *redisconn.Conn {
	if len(e.wrong) > 0 {
		return nil
	}
	conn, err := redisconn.Open(cfg)
	if err != nil {
		e.refuse("%s: %w; give a redis:// or rediss:// URL", source, err)
	}
	return conn
}
