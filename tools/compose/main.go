// Compose validates a compose file against the compose specification and checks that every port is
// published on 127.0.0.1 only. It needs no Docker.
//
//	go run . ../../localstack/compose/compose.yaml
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: compose FILE")
		os.Exit(2)
	}
	if err := check(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "compose:", err)
		os.Exit(1)
	}
}

// check validates the file. The file must be invalid without LOCALSTACK_AUTH_TOKEN.
func check(ctx context.Context, file string) error {
	if _, err := load(ctx, file); err == nil {
		return errors.New("the file must be invalid without LOCALSTACK_AUTH_TOKEN")
	}
	services, err := load(ctx, file, "LOCALSTACK_AUTH_TOKEN=ls-example")
	if err != nil {
		return err
	}
	for name, addresses := range services {
		for _, address := range addresses {
			if address != "127.0.0.1" {
				return fmt.Errorf("a port of %s is published on %q; publish it on 127.0.0.1", name, address)
			}
		}
	}
	return nil
}

// load returns the host addresses of the ports of each service.
func load(ctx context.Context, file string, env ...string) (map[string][]string, error) {
	options, err := cli.NewProjectOptions([]string{file}, cli.WithEnv(env), cli.WithInterpolation(true),
		cli.WithResolvedPaths(true))
	if err != nil {
		return nil, fmt.Errorf("error reading %s: %w", file, err)
	}
	project, err := options.LoadProject(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	out := make(map[string][]string)
	for name, service := range project.Services {
		out[name] = []string{}
		for _, port := range service.Ports {
			out[name] = append(out[name], port.HostIP)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("the file has no service")
	}
	return out, nil
}
