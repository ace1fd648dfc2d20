// Awsstub is a stand-in for the Terraform provider hashicorp/aws. It serves the real schema of the
// resources that Sluice's module uses and calls no service. With it, `tofu validate`, `test` and
// `plan` work on a machine without an AWS account and without access to the registry. See
// mirror.sh.
package main

import (
	_ "embed"
	"fmt"
	"os"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"
)

//go:embed schema.json
var schemaJSON []byte

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "awsstub:", err)
		os.Exit(1)
	}
}

func run() error {
	s, err := newServer(schemaJSON)
	if err != nil {
		return err
	}
	return tf6server.Serve("registry.opentofu.org/hashicorp/aws", func() tfprotov6.ProviderServer { return s })
}
