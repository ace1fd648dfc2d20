// Package cli is the command line: commands, flags, what is printed, and exit codes.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/cmd/sluice/internal/table"
)

// Program is the process around the commands.
type Program struct {
	Getenv  func(string) string
	Environ func() []string
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
}

// Run carries out a command line and returns the process's exit code. When ctx ends, so does the
// command.
func (p Program) Run(ctx context.Context, args []string) int {
	a := &app{Program: p}
	root := a.root() //nolint:contextcheck // cobra hands ctx to each command
	root.SetArgs(args)
	root.SetIn(p.Stdin)
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	return a.exit(ctx, root.ExecuteContext(ctx))
}

// app is one run of the program.
type app struct {
	Program

	endpoint, auth, region, profile string
	json, quiet                     bool
	timeout                         duration

	running bool // the command line was understood
}

const long = `Sluice from a shell: distributed locks around commands, delayed jobs, rate limits and their policies.

Every command talks to the API at --endpoint, signed with your AWS credentials (environment, profile, SSO, instance role). The local
stack, go run ./localstack up, is at http://127.0.0.1:4000 and takes plain requests, which are the default for this machine.

Exit codes:
  0  done           3  denied, held, or in another state
  1  failed         4  there is no such job, queue or policy
  2  wrong usage    5  the API or its store cannot be reached: try again
` + "`lock run`" + ` has its command's code, or one of its own: see sluice lock run --help.`

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use: "sluice", Short: "Locks, delayed jobs and rate limits on AWS", Long: long, SilenceErrors: true,
		SilenceUsage: true, Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	a.timeout = duration(10 * time.Second)
	f := root.PersistentFlags()
	f.StringVar(&a.endpoint, "endpoint", "", "`URL` of the API (default $SLUICE_ENDPOINT)")
	f.StringVar(&a.auth, "auth", "",
		"aws_iam or none (default $SLUICE_AUTH, else none for this machine and aws_iam for any other)")
	f.StringVar(&a.region, "region", "",
		"AWS region to sign for (default: the endpoint's, else the AWS configuration's)")
	f.StringVar(&a.profile, "profile", "", "profile of the AWS configuration")
	f.Var(&a.timeout, "timeout", "how long one request may take, without the time a lock waits")
	f.BoolVar(&a.json, "json", false, "print JSON")
	f.BoolVarP(&a.quiet, "quiet", "q", false, "print only results and errors")
	root.AddCommand(a.lockCommand(), a.jobsCommand(), a.limitsCommand(), a.policiesCommand(), a.healthCommand(),
		a.benchCommand(), a.versionCommand())
	a.watch(root)
	return root
}

// watch notes when a command begins to run: an error before that is one of usage.
func (a *app) watch(c *cobra.Command) {
	run := c.RunE
	c.RunE = func(cmd *cobra.Command, args []string) error {
		a.running = true
		return run(cmd, args)
	}
	for _, child := range c.Commands() {
		a.watch(child)
	}
}

// client connects as the global flags and the environment say.
func (a *app) client(ctx context.Context) (*client.Client, error) {
	endpoint := first(a.endpoint, a.Getenv("SLUICE_ENDPOINT"))
	if endpoint == "" {
		return nil, usageError{errors.New("no endpoint: set SLUICE_ENDPOINT or --endpoint to the URL of the API; " +
			"the local stack (go run ./localstack up) is http://127.0.0.1:4000")}
	}
	cfg := client.Config{
		Endpoint: endpoint, Auth: client.Auth(first(a.auth, a.Getenv("SLUICE_AUTH"), defaultAuth(endpoint))),
		Region:  a.region,
		Timeout: time.Duration(a.timeout), UserAgent: "sluice-cli/" + version(),
	}
	if a.profile != "" && cfg.Auth == client.AuthIAM {
		if err := useProfile(ctx, &cfg, a.profile); err != nil {
			return nil, err
		}
	}
	c, err := client.New(cfg)
	if err != nil {
		return nil, usageError{err}
	}
	return c, nil
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// defaultAuth is plain for this machine, where only a local stack can be.
func defaultAuth(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return string(client.AuthIAM)
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() == "localhost" || ip.IsLoopback() {
		return string(client.AuthNone)
	}
	return string(client.AuthIAM)
}

// command completes a command: its arguments are checked before anything else, and a client is made
// for run.
func (a *app) command(c *cobra.Command, args cobra.PositionalArgs,
	run func(ctx context.Context, api *client.Client, args []string) error) *cobra.Command {
	c.DisableFlagsInUseLine = true
	c.Args = func(cmd *cobra.Command, given []string) error {
		if args(cmd, given) != nil {
			return fmt.Errorf("wrong number of arguments: it is %s", cmd.UseLine())
		}
		return nil
	}
	c.RunE = func(cmd *cobra.Command, given []string) error {
		api, err := a.client(cmd.Context())
		if err != nil {
			return err
		}
		return run(cmd.Context(), api, given)
	}
	return c
}

// parent is a command that only has others.
func (a *app) parent(use, short string, children ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short, Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(children...)
	return c
}

// noCommand refuses what was given as a command and is none.
func noCommand(cmd *cobra.Command, given []string) error {
	if len(given) == 0 {
		return nil
	}
	hint := ""
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(given[0]); len(near) > 0 {
		hint = fmt.Sprintf("; did you mean %q?", near[0])
	}
	return fmt.Errorf("there is no command %q in %q%s", given[0], cmd.CommandPath(), hint)
}

// print writes v as JSON when that is wanted, else as text does.
func (a *app) print(v any, text func(io.Writer) error) error {
	if !a.json {
		return text(a.Stdout)
	}
	return writeJSON(a.Stdout, v)
}

func writeJSON(out io.Writer, v any) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

// note tells people what happens; programs are not told.
func (a *app) note(format string, args ...any) {
	if !a.quiet {
		_, _ = fmt.Fprintf(a.Stderr, format+"\n", args...)
	}
}

// colour tells whether w wants it: a terminal, unless NO_COLOR is set (https://no-color.org).
func (a *app) colour(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || a.Getenv("NO_COLOR") != "" || a.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func (a *app) table(header ...string) *table.Table { return table.New(a.colour(a.Stdout), header...) }
