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
		Use: "check POLICY KEY [flags]", Short: "Charge a limit, and report whether the request is allowed",
		Long: "Charge a key under every rule of a policy. The exit code is 0 if the request is allowed, and 3 if\n" +
			"it is denied. A denied request is not charged.",
		Example: "  sluice limits check login ann\n  sluice limits check export tenant-7 --cost 50 -q && ./export.sh",
	}, cobra.ExactArgs(2), func(ctx context.Context, api *client.Client, args []string) error {
		return a.decision(api.Check(ctx, client.Check{Policy: args[0], Key: args[1], Cost: cost}))
	})
	c.Flags().Int64Var(&cost, "cost", 1, "units to charge: 1 to 10000")
	return c
}

func (a *app) limitsPeekCommand() *cobra.Command {
	return a.command(&cobra.Command{
		Use: "peek POLICY KEY", Short: "Show the decision for one unit without charging it",
		Example: "  sluice limits peek login ann",
	}, cobra.ExactArgs(2), func(ctx context.Context, api *client.Client, args []string) error {
		return a.decision(api.Peek(ctx, args[0], args[1]))
	})
}

func (a *app) limitsRefundCommand() *cobra.Command {
	var cost int64
	c := a.command(&cobra.Command{
		Use: "refund POLICY KEY [flags]", Short: "Return charged units to a key",
		Example: "  sluice limits refund export tenant-7 --cost 20",
	}, cobra.ExactArgs(2), func(ctx context.Context, api *client.Client, args []string) error {
		d, err := api.Refund(ctx, args[0], args[1], cost)
		if err != nil {
			return err
		}
		return a.print(d, func(out io.Writer) error { return a.writeDecision(out, d) })
	})
	c.Flags().Int64Var(&cost, "cost", 1, "units to return: 1 to 10000")
	return c
}

func (a *app) limitsResetCommand() *cobra.Command {
	return a.command(&cobra.Command{
		Use: "reset POLICY KEY", Short: "Make the whole limit available to a key again",
		Example: "  sluice limits reset login ann",
	}, cobra.ExactArgs(2), func(ctx context.Context, api *client.Client, args []string) error {
		if err := api.Reset(ctx, args[0], args[1]); err != nil {
			return err
		}
		doc := map[string]any{"policy": args[0], "key": args[1], "reset": true}
		return a.printLine(doc, "%s has its whole limit again under %s", args[1], args[0])
	})
}

// decision prints a decision. The exit code of a denial is 3.
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
	if _, err := fmt.Fprintln(out, a.verdict(out, d)); err != nil || len(d.Rules) == 0 {
		return err
	}
	t := a.table("RULE", "ALGORITHM", "LIMIT", "REMAINING", "FULL IN")
	for _, r := range d.Rules {
		t.Row(table.Text(r.Name), table.Text(string(r.Algorithm)), right(perWindow(r.Limit, r.Window)),
			number(r.Remaining), right(human.Duration(r.ResetAfter)))
	}
	return t.Write(out)
}

// verdict describes a decision in one line.
func (a *app) verdict(out io.Writer, d client.Decision) string {
	denied := table.Paint(a.colour(out), table.Red, "denied")
	var verdict string
	switch {
	case d.Allowed:
		verdict = table.Paint(a.colour(out), table.Green, "allowed")
	case d.RetryAfter == nil:
		verdict = denied + " permanently: the cost exceeds the limit"
	default:
		verdict = denied + " for " + human.Duration(*d.RetryAfter)
	}

	if d.Violated != "" {
		verdict += " (" + d.Violated + ")"
	}
	if d.Mode != "" && d.Mode != client.PolicyEnforce {
		verdict += " · mode " + string(d.Mode)
	}
	if d.Degraded {
		verdict += " · degraded: Redis is unavailable"
	}
	return verdict
}

// perWindow formats a limit as "500/1h".
func perWindow(limit int64, window time.Duration) string {
	return strconv.FormatInt(limit, 10) + "/" + human.Duration(window)
}
