package redisconn

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// unavailable reports whether err says that the server is away, or there and unable to take a
// write.
func unavailable(err error) bool {
	var network net.Error
	switch {
	case errors.As(err, &network),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled),
		errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted), errors.Is(err, redis.ErrClosed):
		return true
	}
	var refusal redis.Error
	if !errors.As(err, &refusal) {
		return true // the driver's own words, such as "cluster has no nodes": no answer came from a server
	}
	return refused(refusal.Error())
}

// refused finds the replies of a server that is up but cannot serve. Redis 6.2 puts the reply of a
// command inside a script behind "ERR Error running script (…): @user_script:1: -READONLY …"; later
// versions put it first.
func refused(text string) bool {
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
