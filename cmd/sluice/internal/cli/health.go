package cli

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/cmd/sluice/internal/table"
)

func (a *app) healthCommand() *cobra.Command {
	return a.command(&cobra.Command{
		Use: "health", Short: "Look at everything that the API depends on",
		Long:    "Look at everything that the API depends on. The exit code is 5 when something is down or unsafe.",
		Example: "  sluice health",
	}, cobra.NoArgs, func(ctx context.Context, api *client.Client, _ []string) error {
		h, err := api.Health(ctx)
		if err != nil {
			return err
		}
		if err := a.print(h, func(out io.Writer) error { return a.writeHealth(out, h) }); err != nil || h.Healthy() {
			return err
		}
		return codedError{code: exitUnavailable}
	})
}

func (a *app) writeHealth(out io.Writer, h client.Health) error {
	t := a.table("CHECK", "STATUS", "TOOK", "DETAIL")
	for _, c := range h.Checks {
		t.Row(table.Text(c.Name), statusCell(c.Status),
			table.Cell{Text: strconv.FormatFloat(float64(c.Latency)/float64(time.Millisecond), 'f', 1, 64) + "ms", Right: true}, table.Text(c.Detail))
	}
	if err := t.Write(out); err != nil {
		return err
	}
	status := statusCell(h.Status)
	_, err := fmt.Fprintf(out, "\n%s\n", table.Paint(a.colour(out), status.Colour, status.Text))
	return err
}

func statusCell(status string) table.Cell {
	c := table.Cell{Text: status}
	switch status {
	case "ok":
		c.Colour = table.Green
	case "down", "unsafe", "unhealthy":
		c.Colour = table.Red
	default:
		c.Colour = table.Yellow
	}
	return c
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return a.print(map[string]string{"version": version()}, func(out io.Writer) error {
				_, err := fmt.Fprintln(out, "sluice "+version())
				return err
			})
		},
	}
}

// version is that of the module this was built from: a release's tag, else "(devel)" or the commit.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}
