// Package cli implements the commands of sluice: their flags, their output and their exit codes.
package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/client"
)

// Program replaces the environment variables and the standard streams of the process.
type Program struct {
	// Getenv returns an environment variable, as os.Getenv does.
	Getenv func(string) string
	// Environ returns all environment variables, as os.Environ does.
	Environ func() []string
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
}

// Run runs a command line and returns the exit code of the process. If ctx ends, the command stops.
func (p Program) Run(ctx context.Context, args []string) int {
	a := &app{Program: p}
	root := a.root() //nolint:contextcheck // cobra passes ctx to each command
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

	running bool // the command line was valid, and the command has started
}

const long = `Run commands under distributed locks, and manage delayed jobs, rate limits and policies.

Every command calls the API at --endpoint. Requests are signed with your AWS credentials
(environment, profile, SSO or instance role). Requests to this machine are not signed by default;
the local stack, go run ./localstack up, is at http://127.0.0.1:4000.

Exit codes:
  0  success
  1  failure
  2  invalid command line or input
  3  limit exceeded, lock held, or wrong state of a job or policy
  4  the job, queue or policy does not exist
  5  the API or its store is unavailable; try again
` + "`lock run`" + ` exits with the code of its command, or with a code of its own: see sluice lock run --help.`

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use: "sluice", Short: "Locks, delayed jobs and rate limits on AWS", Long: long,
		Example: "  sluice lock run nightly-report -- ./report.sh\n" +
			"  sluice jobs push orders '{\"order\": 42}' --delay 5m\n" +
			"  sluice limits check login ann",
		SilenceErrors: true, SilenceUsage: true, Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	a.timeout = duration(10 * time.Second)
	f := root.PersistentFlags()
	f.StringVar(&a.endpoint, "endpoint", "", "`URL` of the API (default $SLUICE_ENDPOINT)")
	f.StringVar(&a.auth, "auth", "",
		"aws_iam or none (default $SLUICE_AUTH; without it, \"none\" for an API on this machine "+
			"and \"aws_iam\" for others)")
	f.StringVar(&a.region, "region", "",
		"AWS region to sign for if the endpoint does not contain one (default: from the AWS configuration)")
	f.StringVar(&a.profile, "profile", "", "profile of the AWS configuration")
	f.Var(&a.timeout, "timeout", "time limit of one request, not counting the wait for a lock")
	f.BoolVar(&a.json, "json", false, "print JSON")
	f.BoolVarP(&a.quiet, "quiet", "q", false, "print only results and errors")
	root.AddCommand(a.lockCommand(), a.jobsCommand(), a.limitsCommand(), a.policiesCommand(), a.healthCommand(),
		a.benchCommand(), a.versionCommand())
	a.watch(root)
	return root
}

// watch sets a.running when a command starts. An error before that is a usage error.
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

// command sets Args and RunE of c. When c is executed, it validates the arguments, connects to the
// API and then calls run.
func (a *app) command(
	c *cobra.Command, args cobra.PositionalArgs,
	run func(ctx context.Context, api *client.Client, args []string) error,
) *cobra.Command {
	c.DisableFlagsInUseLine = true
	c.Args = func(cmd *cobra.Command, given []string) error {
		if args(cmd, given) != nil {
			return fmt.Errorf("wrong number of arguments; the usage is: %s", cmd.UseLine())
		}
		return nil
	}
	c.RunE = func(cmd *cobra.Command, given []string) error {
		api, err := a.connect(cmd.Context())
		if err != nil {
			return err
		}
		return run(cmd.Context(), api, given)
	}
	return c
}

// parent returns a command that only has subcommands.
func (a *app) parent(use, short string, children ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short, Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(children...)
	return c
}

// noCommand refuses every argument of a parent: such an argument is an unknown subcommand.
func noCommand(cmd *cobra.Command, given []string) error {
	if len(given) == 0 {
		return nil
	}
	hint := ""
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(given[0]); len(near) > 0 {
		hint = fmt.Sprintf("; did you mean %q?", near[0])
	}
	return fmt.Errorf("%q has no command %q%s", cmd.CommandPath(), given[0], hint)
}
