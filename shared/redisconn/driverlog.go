package redisconn

import "github.com/redis/go-redis/v9/logging"

// SilenceDriver ends what the driver prints by itself: lines that are no JSON and tell addresses.
// Whatever goes wrong with a call is in the call's error, which is logged. It is for the start of a
// program: it holds for the whole process.
func SilenceDriver() { logging.Disable() }
