package stack

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sluicehq/sluice/localstack/gateway"
	"github.com/sluicehq/sluice/localstack/lambdaproc"
	"github.com/sluicehq/sluice/localstack/localaws"
	"github.com/sluicehq/sluice/shared/delayqueue/outbox"
	"github.com/sluicehq/sluice/shared/lock/dynamolock"
	"github.com/sluicehq/sluice/shared/policy/dynamopolicy"
)

const (
	dispatcher = "dispatcher"

	policyTable = "sluice-policies"
	outboxTable = "sluice-outbox"
	lockTable   = "sluice-locks"

	// concurrency is the number of concurrent invocations per process. It is high because an
	// acquire can wait for up to 20 s, and waiters must not block a release. On AWS, Lambda starts
	// more instances instead.
	concurrency  = 32
	readyTimeout = 30 * time.Second
)

// timeouts returns the Lambda timeout of each function. The dispatcher's timeout is 30 s longer
// than its interval, so that consecutive invocations overlap.
func (s *Stack) timeouts() map[string]time.Duration {
	return map[string]time.Duration{
		"lock":     29 * time.Second,
		"enqueue":  10 * time.Second,
		"limit":    10 * time.Second,
		dispatcher: s.cfg.Tick + 30*time.Second,
	}
}

func (s *Stack) createQueues(ctx context.Context) error {
	s.QueueURLs = make(map[string]string)
	for _, name := range s.cfg.Queues {
		attributes := map[string]string{}
		if strings.HasSuffix(name, ".fifo") {
			attributes["FifoQueue"] = "true"
		}
		out, err := s.SQS.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String(name), Attributes: attributes})
		if err != nil {
			return fmt.Errorf("error creating the queue %q: %w", name, err)
		}
		// kumo returns a URL with its default address. Replace it with the address of the local
		// AWS.
		url := aws.ToString(out.QueueUrl)
		if i := strings.Index(url, "/000000000000/"); i >= 0 {
			url = s.AWSEndpoint + url[i:]
		}
		s.QueueURLs[name] = url
	}
	return nil
}

func (s *Stack) createTables(ctx context.Context, c *localaws.Server) error {
	client := dynamodb.NewFromConfig(c.Config())
	for _, table := range []*dynamodb.CreateTableInput{dynamopolicy.TableInput(policyTable),
		outbox.TableInput(outboxTable), dynamolock.TableInput(lockTable)} {
		if _, err := client.CreateTable(ctx, table); err != nil {
			return fmt.Errorf("error creating the table %q: %w", aws.ToString(table.TableName), err)
		}
	}
	return nil
}

func (s *Stack) startFunctions(ctx context.Context, c *localaws.Server, binaries string, lockNodes []string) error {
	queues, err := json.Marshal(s.QueueURLs)
	if err != nil {
		return fmt.Errorf("error encoding the queues: %w", err)
	}
	env := append(localaws.Env(s.AWSEndpoint),
		"SLUICE_REDIS_URL="+s.RedisURL, "SLUICE_QUEUES="+string(queues),
		"SLUICE_POLICY_TABLE="+policyTable, "SLUICE_OUTBOX_TABLE="+outboxTable, "SLUICE_LOCK_TABLE="+lockTable)
	if len(lockNodes) > 0 {
		env = append(env, "SLUICE_LOCK_NODES="+strings.Join(lockNodes, ","))
	}
	for name, timeout := range s.timeouts() {
		if err := c.CreateFunction(ctx, name, timeout); err != nil {
			return err
		}
		perProcess := concurrency
		if name == dispatcher {
			perProcess = 1 // overlapping invocations run in separate processes, as on AWS
		}
		fleet, err := lambdaproc.Start(lambdaproc.Function{ //nolint:contextcheck // the processes outlive the start
			Name: name, Binary: filepath.Join(binaries, name), RuntimeAPI: c.Host() + "/_runtime/" + name,
			Processes:   s.cfg.Processes,
			Concurrency: perProcess, Env: append(env, s.cfg.Env...), Log: s.log,
		})
		if err != nil {
			return err
		}
		s.fleets[name] = fleet
		s.onClose(func() error { fleet.Stop(); return nil })
	}
	return nil
}

// awaitFunctions invokes each function of the API until it answers.
func (s *Stack) awaitFunctions(ctx context.Context, invoker gateway.Invoker) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	var e events.APIGatewayV2HTTPRequest
	e.RawPath, e.RequestContext.HTTP.Method = "/ready", "GET"
	payload, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("error encoding an event: %w", err)
	}
	for _, name := range []string{"lock", "enqueue", "limit"} {
		for {
			if _, err = invoker.Invoke(ctx, name, payload); err == nil {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("the function %s does not answer; read its output with --log -: %w", name, err)
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
	return nil
}

// syncWriter serializes concurrent writes of several processes.
type syncWriter struct {
	mu  sync.Mutex
	out interface{ Write([]byte) (int, error) }
}

func (l *syncWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(p)
}
