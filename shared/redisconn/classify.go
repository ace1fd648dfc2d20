package redisconn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// unavailable reports whether err means that no server answered, or that the server that answered
// cannot serve the command now.
func unavailable(err error) bool {
	var network net.Error
	switch {
	case errors.As(err, &network),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled),
		errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted), errors.Is(err, redis.ErrClosed):
		return true
	}
	var reply redis.Error
	if !errors.As(err, &reply) {
		return true // an error of the driver, such as "cluster has no nodes": no server answered
	}
	return cannotServe(reply.Error())
}

// refused returns the error for an error reply that is caused by a defect or a wrong configuration.
func refused(err error) error {
	if moved := strings.Fields(err.Error()); len(moved) == 3 && moved[0] == "MOVED" {
		return fmt.Errorf("redis cluster: slot %s is served by %s, not by the configured node; "+
			"set SLUICE_REDIS_CLUSTER=true: %w", moved[1], moved[2], err)
	}
	return fmt.Errorf("redis refused a call: %w", err)
}

// cannotServe reports whether an error reply comes from a server that is up but cannot serve. Redis
// 6.2 puts the error of a command inside a script after "ERR Error running script (…):
// @user_script:1: -READONLY …"; later versions put it first.
func cannotServe(text string) bool {
	for _, code := range []string{
		"READONLY", "LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "OOM", "NOREPLICAS", "MISCONF", "BUSY",
		"UNBLOCKED", "NOAUTH", "WRONGPASS", "NOPERM",
	} {
		if strings.HasPrefix(text, code+" ") || strings.Contains(text, " -"+code+" ") {
			return true
		}
	}
	return strings.Contains(text, "max number of clients reached")
}
