package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/cmd/sluice/internal/human"
	"github.com/sluicehq/sluice/cmd/sluice/internal/table"
)

func (a *app) policiesCommand() *cobra.Command {
	return a.parent("policies", "Look after the limiter's policies", a.policiesListCommand(), a.policiesGetCommand(),
		a.policiesPutCommand(), a.policiesDeleteCommand())
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
			t := a.table("POLICY", "MODE", "RULES", "OVERRIDES", "VERSION", "CHANGED")
			for _, p := range policies {
				t.Row(table.Text(p.Name), modeCell(p.Mode), table.Text(rules(p.Rules)), count(int64(len(p.Overrides))),
					count(p.Version),
					table.Text(human.Instant(p.UpdatedAt, time.Now())))
			}
			return t.Write(out)
		})
	})
}

func modeCell(m client.PolicyMode) table.Cell {
	c := table.Cell{Text: string(m)}
	if m != client.PolicyEnforce {
		c.Colour = table.Yellow
	}
	return c
}

// rules writes rules as "burst 10/1s (20), hourly 500/1h".
func rules(rules []client.Rule) string {
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
		Use: "get NAME", Short: "Print a policy as JSON, as policies put takes it",
		Long:    "Print a policy as JSON, as policies put takes it. --json adds its version, when it was changed, and its ETag.",
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

// withETag is what --json prints.
type withETag struct {
	client.StoredPolicy
	ETag string `json:"etag"`
}

func (a *app) policiesPutCommand() *cobra.Command {
	var ifMatch string
	var create bool
	c := a.command(&cobra.Command{
		Use: "put NAME [FILE] [flags]", Short: "Create or replace a policy from a file, or from standard input",
		Long:    "Create or replace a policy from a file, or from standard input when FILE is - or is not given. It is in force everywhere within 5 s.",
		Example: "  sluice policies put login login.json\n  sluice policies put login --if-match '\"3-0a1b…\"' <login.json",
	}, cobra.RangeArgs(1, 2), func(ctx context.Context, api *client.Client, args []string) error {
		p, err := a.readPolicy(args[0], append(args[1:], "-")[0])
		if err != nil {
			return err
		}
		var conditions []client.Condition
		if ifMatch != "" {
			conditions = append(conditions, client.IfMatch(ifMatch))
		}
		if create {
			conditions = append(conditions, client.IfNoneMatch())
		}
		stored, err := api.PutPolicy(ctx, p, conditions...)
		if err != nil {
			return err
		}
		return a.print(withETag{stored, stored.ETag}, func(out io.Writer) error {
			_, err := fmt.Fprintf(out, "%s is stored, version %d, ETag %s\n", stored.Name, stored.Version, stored.ETag)
			return err
		})
	})
	c.Flags().StringVar(&ifMatch, "if-match", "", "only if the stored policy still has this `ETag`")
	c.Flags().BoolVar(&create, "create", false, "only if there is none of this name")
	c.MarkFlagsMutuallyExclusive("if-match", "create")
	return c
}

// readPolicy reads a policy, and refuses a field that it does not know: a misspelt one must not be
// ignored.
func (a *app) readPolicy(name, path string) (client.Policy, error) {
	var p client.Policy
	var text []byte
	var err error
	if path == "-" {
		text, err = a.readAll()
	} else {
		text, err = os.ReadFile(path) //nolint:gosec // the user's own file
	}
	if err != nil {
		return p, err
	}
	var file policyFile
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&file); err != nil {
		return p, usageError{fmt.Errorf("%s is no policy: %w",
			first(map[bool]string{true: "standard input"}[path == "-"], path), err)}
	}
	if decoder.More() {
		return p, usageError{errors.New("there is something after the policy")}
	}
	p = file.policy()
	if p.Name == "" {
		p.Name = name
	}
	if p.Name != name {
		return p, usageError{fmt.Errorf("the policy names itself %q, not %q", p.Name, name)}
	}
	return p, nil
}

func (a *app) policiesDeleteCommand() *cobra.Command {
	var ifMatch string
	c := a.command(&cobra.Command{
		Use: "delete NAME [flags]", Short: "Delete a policy", Example: "  sluice policies delete login",
	}, cobra.ExactArgs(1), func(ctx context.Context, api *client.Client, args []string) error {
		var conditions []client.Condition
		if ifMatch != "" {
			conditions = append(conditions, client.IfMatch(ifMatch))
		}
		if err := api.DeletePolicy(ctx, args[0], conditions...); err != nil {
			return err
		}
		return a.print(map[string]any{"deleted": args[0]}, func(out io.Writer) error {
			_, err := fmt.Fprintf(out, "%s is deleted\n", args[0])
			return err
		})
	})
	c.Flags().StringVar(&ifMatch, "if-match", "", "only if the stored policy still has this `ETag`")
	return c
}
