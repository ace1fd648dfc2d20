// Package client is the Go client of Sluice: locks that renew themselves and say when they are
// lost, delayed jobs, and rate limits.
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
// Requests are signed with AWS Signature Version 4. A call that failed is repeated only where that
// cannot do a thing twice; see [Config.Retries]. Every error that an answer carried is an [*Error],
// and matches the sentinels of this package with errors.Is.
package client
