package cli

import (
	"context"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/cmd/sluice/internal/human"
	"github.com/sluicehq/sluice/cmd/sluice/internal/table"
)

func (a *app) policiesCommand() *cobra.Command {
	return a.parent("policies", "Manage the policies of the rate limiter", a.policiesListCommand(),
		a.policiesGetCommand(), a.policiesPutCommand(), a.policiesDeleteCommand())
}

func (a *app) policiesListCommand() *cobra.Command {
	return a.command(&cobra.Command{
		Use: "list", Short: "List every policy", Example: "  sluice policies list",
	}, cobra.NoArgs, func(ctx context.Context, api *client.Client, _ []string) error {
		policies := []client.StoredPolicy{}
		for p, err := range api.ListPolicies(ctx) {
			if err != nil {
				return err
			}
			policies = append(policies, p)
		}
		return a.print(map[string]any{"policies": policies}, func(out io.Writer) error {
			return a.writePolicies(out, policies)
		})
	})
}

func (a *app) writePolicies(out io.Writer, policies []client.StoredPolicy) error {
	t := a.table("POLICY", "MODE", "RULES", "OVERRIDES", "VERSION", "CHANGED")
	for _, p := range policies {
		t.Row(table.Text(p.Name), modeCell(p.Mode), table.Text(describe(p.Rules)), number(int64(len(p.Overrides))),
			number(p.Version), table.Text(human.Instant(p.UpdatedAt, time.Now())))
	}
	return t.Write(out)
}

func modeCell(m client.PolicyMode) table.Cell {
	c := table.Cell{Text: string(m)}
	if m != client.PolicyEnforce {
		c.Colour = table.Yellow
	}
	return c
}

// describe formats rules as "burst 10/1s (20), hourly 500/1h".
func describe(rules []client.Rule) string {
	out := make([]string, len(rules))
	for i, r := range rules {
		out[i] = r.Name + " " + perWindow(r.Limit, r.Window)
		if r.Burst > 0 {
			out[i] += " (" + strconv.FormatInt(r.Burst, 10) + ")"
		}
	}
	return strings.Join(out, ", ")
}

func (a *app) policiesGetCommand() *cobra.Command {
	return a.command(&cobra.Command{
		Use: "get NAME", Short: "Print a policy as JSON",
		Long: "Print a policy as JSON, in the form that policies put reads. --json adds its version, its ETag\n" +
			"and the time of its last change.",
		Example: "  sluice policies get login >login.json; $EDITOR login.json; sluice policies put login login.json",
	}, cobra.ExactArgs(1), func(ctx context.Context, api *client.Client, args []string) error {
		p, err := api.GetPolicy(ctx, args[0])
		if err != nil {
			return err
		}
		return a.print(withETag{p, p.ETag}, func(out io.Writer) error {
			a.note("version %d, ETag %s, changed %s", p.Version, p.ETag, human.Instant(p.UpdatedAt, time.Now()))
			return writeJSON(out, p.Policy)
		})
	})
}

// withETag is the JSON output for a policy.
type withETag struct {
	client.StoredPolicy

	ETag string `json:"etag"`
}

func (a *app) policiesPutCommand() *cobra.Command {
	var ifMatch string
	var create bool
	c := a.command(&cobra.Command{
		Use: "put NAME [FILE] [flags]", Short: "Create or replace a policy",
		Long: "Create or replace a policy. It is read from FILE, or from standard input if FILE is - or missing.\n" +
			"Every function instance applies it within 5 s.",
		Example: "  sluice policies put login login.json\n" +
			"  sluice policies put login --if-match '\"3-0a1b…\"' <login.json",
	}, cobra.RangeArgs(1, 2), func(ctx context.Context, api *client.Client, args []string) error {
		p, err := a.readPolicy(args[0], append(args[1:], "-")[0])
		if err != nil {
			return err
		}
		conditions := matching(ifMatch)
		if create {
			conditions = append(conditions, client.IfNoneMatch())
		}
		stored, err := api.PutPolicy(ctx, p, conditions...)
		if err != nil {
			return err
		}
		return a.printLine(withETag{stored, stored.ETag}, "%s is stored, version %d, ETag %s",
			stored.Name, stored.Version, stored.ETag)
	})
	c.Flags().StringVar(&ifMatch, "if-match", "", "only if the stored policy has this `ETag`")
	c.Flags().BoolVar(&create, "create", false, "only if no policy of this name exists")
	c.MarkFlagsMutuallyExclusive("if-match", "create")
	return c
}

func (a *app) policiesDeleteCommand() *cobra.Command {
	var ifMatch string
	c := a.command(&cobra.Command{
		Use: "delete NAME [flags]", Short: "Delete a policy", Example: "  sluice policies delete login",
	}, cobra.ExactArgs(1), func(ctx context.Context, api *client.Client, args []string) error {
		if err := api.DeletePolicy(ctx, args[0], matching(ifMatch)...); err != nil {
			return err
		}
		return a.printLine(map[string]any{"deleted": args[0]}, "%s is deleted", args[0])
	})
	c.Flags().StringVar(&ifMatch, "if-match", "", "only if the stored policy has this `ETag`")
	return c
}

// matching returns the condition for an ETag, or no condition if the ETag is empty.
func matching(etag string) []client.Condition {
	if etag == "" {
		return nil
	}
	return []client.Condition{client.IfMatch(etag)}
}
