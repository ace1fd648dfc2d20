package stack

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"time"

	"github.com/sluicehq/sluice/localstack/lambdaproc"
	"github.com/sluicehq/sluice/localstack/localaws"
	"github.com/sluicehq/sluice/localstack/poller"
)

// consumerTimeout is the Lambda timeout of a consumer.
const consumerTimeout = 30 * time.Second

// startConsumers starts the consumer functions and the pollers that deliver messages to them.
func (s *Stack) startConsumers(ctx context.Context, aws *localaws.Server, invoker poller.Invoker,
	binaries string) error {
	for queue, folder := range s.cfg.Consumers {
		url, ok := s.QueueURLs[queue]
		if !ok {
			return fmt.Errorf("the consumer %s is for the queue %q, which is not among --queues", folder, queue)
		}
		name := "consumer-" + queue
		if err := aws.CreateFunction(ctx, name, consumerTimeout); err != nil {
			return err
		}
		fleet, err := lambdaproc.Start(lambdaproc.Function{ //nolint:contextcheck // the processes outlive the start
			Name:       name,
			Binary:     filepath.Join(binaries, path.Base(folder)),
			RuntimeAPI: aws.Host() + "/_runtime/" + name,
			Env:        append(localaws.Env(s.AWSEndpoint), "SLUICE_ENDPOINT="+s.APIURL),
			Log:        s.log,
		})
		if err != nil {
			return err
		}
		s.onClose(func() error { fleet.Stop(); return nil })
		mapping := poller.Mapping{QueueURL: url, Function: name, OnError: s.logError}
		p := poller.Start(s.SQS, invoker, mapping) //nolint:contextcheck // the poller outlives the start
		s.onClose(func() error { p.Stop(); return nil })
	}
	return nil
}
