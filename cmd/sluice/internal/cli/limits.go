package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/cmd/sluice/internal/human"
	"github.com/sluicehq/sluice/cmd/sluice/internal/table"
)

func (a *app) limitsCommand() *cobra.Command {
	return a.parent("limits", "Check rate limits", a.limitsCheckCommand(), a.limitsPeekCommand(),
		a.limitsRefundCommand(), a.limitsResetCommand())
}

func (a *app) limitsCheckCommand() *cobra.Command {
	var cost int64
	c := a.command(&cobra.Command{
		Use: "check POLICY KEY [flags]", Short: "Charge a limit, and say whether it may pass",
		Long:    "Charge a policy's rules for a key, all or none. The exit code is 0 when it may pass and 3 when it is denied; a denial charges nothing.",
		Example: "  sluice limits check login ann\n  sluice limits check export tenant-7 --cost 50 -q && ./export.sh",
	}, cobra.ExactArgs(2), func(ctx context.Context, api *client.Client, args []string) error {
		return a.decision(api.Check(ctx, client.Check{Policy: args[0], Key: args[1], Cost: cost}))
	})
	c.Flags().Int64Var(&cost, "cost", 1, "how much to charge: 1 to 10000")
	return c
}

func (a *app) limitsPeekCommand() *cobra.Command {
	return a.command(&cobra.Command{
		Use: "peek POLICY KEY", Short: "Show the decision as it would be; nothing is charged",
		Example: "  sluice limits peek login ann",
	}, cobra.ExactArgs(2), func(ctx context.Context, api *client.Client, args []string) error {
		return a.decision(api.Peek(ctx, args[0], args[1]))
	})
}

func (a *app) limitsRefundCommand() *cobra.Command {
	var cost int64
	c := a.command(&cobra.Command{
		Use: "refund POLICY KEY [flags]", Short: "Give back what was charged",
		Example: "  sluice limits refund export tenant-7 --cost 20",
	}, cobra.ExactArgs(2), func(ctx context.Context, api *client.Client, args []string) error {
		d, err := api.Refund(ctx, args[0], args[1], cost)
		if err != nil {
			return err
		}
		return a.print(d, func(out io.Writer) error { return a.writeDecision(out, d) })
	})
	c.Flags().Int64Var(&cost, "cost", 1, "how much to give back: 1 to 10000")
	return c
}

func (a *app) limitsResetCommand() *cobra.Command {
	return a.command(&cobra.Command{
		Use: "reset POLICY KEY", Short: "Make a key start afresh", Example: "  sluice limits reset login ann",
	}, cobra.ExactArgs(2), func(ctx context.Context, api *client.Client, args []string) error {
		if err := api.Reset(ctx, args[0], args[1]); err != nil {
			return err
		}
		return a.print(map[string]any{"policy": args[0], "key": args[1], "reset": true}, func(out io.Writer) error {
			_, err := fmt.Fprintf(out, "%s starts afresh under %s\n", args[1], args[0])
			return err
		})
	})
}

// decision prints a decision; a denial is exit code 3.
func (a *app) decision(d client.Decision, err error) error {
	if err != nil {
		return err
	}
	if err := a.print(d, func(out io.Writer) error { return a.writeDecision(out, d) }); err != nil || d.Allowed {
		return err
	}
	return codedError{code: exitDenied}
}

func (a *app) writeDecision(out io.Writer, d client.Decision) error {
	verdict := table.Paint(a.colour(out), table.Green, "allowed")
	switch {
	case !d.Allowed && d.RetryAfter == nil:
		verdict = table.Paint(a.colour(out), table.Red, "denied") + " for good: the cost is over the limit"
	case !d.Allowed:
		verdict = table.Paint(a.colour(out), table.Red, "denied") + ", again in " + human.Duration(*d.RetryAfter)
	}
	if d.Violated != "" {
		verdict += " (" + d.Violated + ")"
	}
	if d.Mode != "" && d.Mode != "enforce" {
		verdict += " · mode " + string(d.Mode)
	}
	if d.Degraded {
		verdict += " · degraded: the store is away"
	}
	if _, err := fmt.Fprintln(out, verdict); err != nil || len(d.Rules) == 0 {
		return err
	}
	t := a.table("RULE", "ALGORITHM", "LIMIT", "REMAINING", "FULL IN")
	for _, r := range d.Rules {
		t.Row(table.Text(r.Name), table.Text(string(r.Algorithm)),
			table.Cell{Text: perWindow(r.Limit, r.Window), Right: true},
			count(r.Remaining), table.Cell{Text: human.Duration(r.ResetAfter), Right: true})
	}
	return t.Write(out)
}

// perWindow writes a limit as "500/1h".
func perWindow(limit int64, window time.Duration) string {
	return strconv.FormatInt(limit, 10) + "/" + human.Duration(window)
}

func milliseconds(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }
