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
// The client signs requests with AWS Signature Version 4. The credentials come from the credential
// chain of the AWS SDK. A failed call is retried only if the retry cannot duplicate its effect; see
// [Config.Retries].
//
// # Errors
//
// An [*Error] describes a failure at the API, at a gateway in front of it, or in the network. Test
// its kind with errors.Is and the sentinel errors of this package, for example [ErrLockHeld].
//
// # Stability
//
// The package is a separate module, github.com/sluicehq/sluice/client, with its own versions.
// Before v1.0.0, a minor version may contain incompatible changes; a patch version does not. The
// HTTP API is stable: every version of this package works with every deployment that serves /v1.
package client
