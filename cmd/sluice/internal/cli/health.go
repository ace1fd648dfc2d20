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
		Use: "health", Short: "Check the dependencies of the API",
		Long:    "Check the dependencies of the API. The exit code is 5 if a dependency is down or unsafe.",
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
		ms := float64(c.Latency) / float64(time.Millisecond)
		took := right(strconv.FormatFloat(ms, 'f', 1, 64) + "ms")
		t.Row(table.Text(c.Name), statusCell(c.Status), took, table.Text(c.Detail))
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
		Use: "version", Short: "Print the version", Example: "  sluice version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return a.printLine(map[string]string{"version": version()}, "sluice %s", version())
		},
	}
}

// version returns the version of the module that the program was built from: the tag of a release,
// a pseudo-version of the commit, or "(devel)".
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}
