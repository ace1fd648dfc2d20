// Refresh generates schema.json: the schema of hashicorp/aws for the types on its standard input
// ("resource aws_sqs_queue", "data aws_region"). It reads the schema from the npm package
// @cdktn/provider-aws, which is generated from the real provider. See refresh.sh.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	lib := flag.String("lib", "", "the npm package's `folder` lib")
	out := flag.String("out", "schema.json", "the output `file`")
	flag.Parse()
	if err := run(*lib, *out, os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "refresh:", err)
		os.Exit(1)
	}
}

func run(lib, out string, types io.Reader) error {
	doc := struct {
		Version   string            `json:"version"`
		Provider  *block            `json:"provider"`
		Resources map[string]*block `json:"resources"`
		Data      map[string]*block `json:"data"`
	}{Resources: map[string]*block{}, Data: map[string]*block{}}
	provider, err := load(lib, "provider")
	if err != nil {
		return err
	}
	doc.Provider = provider.settings("")
	lines := bufio.NewScanner(types)
	for lines.Scan() {
		mode, name, _ := strings.Cut(lines.Text(), " ")
		folder := strings.ReplaceAll(strings.TrimPrefix(name, "aws_"), "_", "-")
		into := doc.Resources
		if mode == "data" {
			folder, into = "data-aws-"+folder, doc.Data
		}
		f, err := load(lib, folder)
		if err != nil {
			return fmt.Errorf("%s: %w", lines.Text(), err)
		}
		doc.Version, into[name] = f.version, f.top()
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("error reading the types: %w", err)
	}
	return write(out, doc.Version, doc.Provider, doc.Resources, doc.Data)
}

func load(lib, folder string) (*source, error) {
	raw, err := os.ReadFile(filepath.Join(lib, folder, "index.js"))
	if err != nil {
		return nil, fmt.Errorf("the npm package lacks the type: %w", err)
	}
	return parse(string(raw))
}

// write writes each type on its own line, so that diffs are readable.
func write(path, version string, provider *block, resources, data map[string]*block) error {
	var text bytes.Buffer
	line := func(prefix string, v any) error {
		raw, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("error encoding %s: %w", prefix, err)
		}
		_, err = fmt.Fprintf(&text, "%s%s", prefix, raw)
		return err
	}
	if err := line(`{"version":`, version); err != nil {
		return err
	}
	if err := line(",\n\"provider\":", provider); err != nil {
		return err
	}
	for _, group := range []struct {
		name  string
		types map[string]*block
	}{{"resources", resources}, {"data", data}} {
		fmt.Fprintf(&text, ",\n%q:{", group.name)
		for i, name := range slices.Sorted(maps.Keys(group.types)) {
			comma := ","
			if i == 0 {
				comma = ""
			}
			if err := line(fmt.Sprintf("%s\n%q:", comma, name), group.types[name]); err != nil {
				return err
			}
		}
		text.WriteString("\n}")
	}
	text.WriteString("}\n")
	if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
		return fmt.Errorf("error writing the schema: %w", err)
	}
	fmt.Printf("aws %s: %d resources, %d data sources, %d bytes\n", version, len(resources), len(data), text.Len())
	return nil
}
