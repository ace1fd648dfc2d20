package startup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice/shared/telemetry"
)

// Env is the environment of one function. Its methods read variables and open connections. They
// collect errors instead of returning them, so that one start reports every mistake. Use their
// results only if [Env.Err] returns nil.
type Env struct {
	// Log has the level SLUICE_LOG_LEVEL: debug, info (the default), warn or error.
	Log *slog.Logger
	// Metrics has the namespace SLUICE_METRICS_NAMESPACE, by default "Sluice". Two deployments in
	// one account need two namespaces; otherwise the heartbeat metric of one deployment hides
	// that the dispatcher of the other deployment has stopped.
	Metrics *telemetry.Metrics

	getenv      func(string) string
	wrong       []error
	aws         *aws.Config
	terminating context.Context
	drain       func()
}

// NewEnv makes the environment of a function whose log and metrics go to out.
func NewEnv(function string, getenv func(string) string, out io.Writer) *Env {
	namespace := getenv("SLUICE_METRICS_NAMESPACE")
	if namespace == "" {
		namespace = telemetry.DefaultNamespace
	}
	return &Env{
		Log:     telemetry.NewLogger(out, getenv("SLUICE_LOG_LEVEL"), function),
		Metrics: telemetry.NewMetricsIn(out, namespace, function),
		getenv:  getenv,
	}
}

// Err returns the errors so far, joined with [errors.Join], or nil.
func (e *Env) Err() error { return errors.Join(e.wrong...) }

// Get returns the value of an optional variable.
func (e *Env) Get(variable string) string { return e.getenv(variable) }

// Table returns the name of a DynamoDB table from a variable that must be set. The argument purpose
// says in the error message what the table holds, for example "policies".
func (e *Env) Table(variable, purpose string) string {
	return e.required(variable, "give the name of the DynamoDB table of the "+purpose)
}

// required returns the value of a variable that must not be empty. The argument advice is the part
// of the error message that says which value to give.
func (e *Env) required(variable, advice string) string {
	value := e.getenv(variable)
	if value == "" {
		e.refuse("%s is not set; %s", variable, advice)
	}
	return value
}

// flag reads a variable whose value is true or false. The default is false.
func (e *Env) flag(variable string) bool {
	switch value := e.getenv(variable); value {
	case "true":
		return true
	case "", "false":
		return false
	default:
		e.refuse("%s is %q; give true or false", variable, value)
		return false
	}
}

// number reads a variable whose value is a whole number from low to high. It returns 0 if the
// variable is empty.
func (e *Env) number(variable string, low, high int64) int64 {
	text := e.getenv(variable)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < low || n > high {
		e.refuse("%s is %q; give a whole number from %d to %d", variable, text, low, high)
		return 0
	}
	return n
}

func (e *Env) refuse(format string, args ...any) {
	e.wrong = append(e.wrong, fmt.Errorf(format, args...))
}
