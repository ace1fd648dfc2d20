// Command provider is the Terraform provider sluicehq/sluice, which manages limiter policies. It
// calls Sluice only through the API, with Sluice's Go client.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	"github.com/sluicehq/sluice/terraform/provider/internal/provider"
)

// version is set by the linker for a release.
var version = "dev" //nolint:gochecknoglobals // the linker sets it

const address = "registry.terraform.io/sluicehq/sluice"

func main() {
	debug := flag.Bool("debug", false, "run under a debugger, and wait for Terraform to attach")
	flag.Parse()
	options := providerserver.ServeOpts{Address: address, Debug: *debug, ProtocolVersion: 6}
	if err := providerserver.Serve(context.Background(), provider.New(version, os.Getenv), options); err != nil {
		fmt.Fprintln(os.Stderr, "error serving the provider:", err)
		os.Exit(1)
	}
}
