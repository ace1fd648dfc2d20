// Package client is the Go client of Sluice: distributed locks, delayed jobs and rate limits.
//
//	c, err := client.New(client.Config{Endpoint: "https://abc123.execute-api.eu-central-1.amazonaws.com"})
//	...
//	lock, err := c.Lock(ctx, "nightly-report", client.LockOptions{TTL: 30 * time.Second})
//	if err != nil {
//		return err
//	}
//	defer lock.Unlock(ctx)
//	return report(lock.Context(), lock.Fence())
//
// # Requests
//
// Requests are signed with AWS Signature Version 4, with the credential chain of the AWS SDK. A
// failed call is retried only if the retry cannot duplicate its effect; see [Config.Retries].
//
// # Errors
//
// An error that the API or a gateway in front of it caused is an [*Error]. It matches one of the
// sentinel errors of this package with errors.Is, for example [ErrLockHeld].
//
// # Stability
//
// The package is a module of its own, github.com/sluicehq/sluice/client, with its own versions.
// Before v1.0.0, a minor version may change it incompatibly; a patch version does not. The HTTP API
// that it calls is the stable surface of Sluice: any version of this package works with any
// deployment that serves /v1.
package client
