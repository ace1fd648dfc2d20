package redisserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const slots = 16384

// Cluster is a Redis Cluster of masters only.
type Cluster struct{ Nodes []*Server }

// StartCluster starts n masters with equal shares of the hash slots. It waits until every master
// reports a complete cluster.
func StartCluster(ctx context.Context, n int, options Options) (*Cluster, error) {
	options.Cluster = true
	c := &Cluster{}
	for range n {
		s, err := Start(ctx, options)
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.Nodes = append(c.Nodes, s)
	}
	if err := c.join(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("error forming a redis cluster: %w", err), c.Close())
	}
	return c, nil
}

func (c *Cluster) join(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	clients := make([]*redis.Client, len(c.Nodes))
	for i, node := range c.Nodes {
		clients[i] = redis.NewClient(&redis.Options{Addr: node.Addr(), Protocol: 2, DisableIdentity: true})
		defer func() { _ = clients[i].Close() }()
	}
	for i, client := range clients {
		first, last := i*slots/len(clients), (i+1)*slots/len(clients)-1
		if err := client.ClusterAddSlotsRange(ctx, first, last).Err(); err != nil {
			return err
		}
		// Distinct config epochs avoid an epoch collision, which the nodes take seconds to resolve.
		if err := client.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(); err != nil {
			return err
		}
	}
	for _, node := range c.Nodes[1:] {
		host, port, _ := net.SplitHostPort(node.Addr())
		if err := clients[0].ClusterMeet(ctx, host, port).Err(); err != nil {
			return err
		}
	}
	for _, client := range clients {
		if err := awaitCluster(ctx, client, len(clients)); err != nil {
			return err
		}
	}
	return nil
}

// awaitCluster waits until a node reports a complete cluster.
func awaitCluster(ctx context.Context, client *redis.Client, nodes int) error {
	for {
		info, err := client.ClusterInfo(ctx).Result()
		if err == nil && strings.Contains(info, "cluster_state:ok") &&
			strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d", nodes)) {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Addrs returns the addresses of the nodes.
func (c *Cluster) Addrs() []string {
	var addrs []string
	for _, n := range c.Nodes {
		addrs = append(addrs, n.Addr())
	}
	return addrs
}

// URL returns the URLs of the nodes, separated by commas.
func (c *Cluster) URL() string {
	var urls []string
	for _, n := range c.Nodes {
		urls = append(urls, n.URL())
	}
	return strings.Join(urls, ",")
}

// Close closes every node.
func (c *Cluster) Close() error {
	var errs []error
	for _, n := range c.Nodes {
		errs = append(errs, n.Close())
	}
	return errors.Join(errs...)
}
