package redisconn

import "github.com/redis/go-redis/v9/logging"

// SilenceDriver disables the driver's own log for the process: its lines are not JSON and contain
// addresses. The cause of a failed call is in the call's error. Call it at the start of a program.
func SilenceDriver() { logging.Disable() }
