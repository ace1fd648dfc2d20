// Command prose checks comments, messages and documentation for lines that are too wide and phrases
// that are hard to understand. It prints one line per finding and fails if there is a finding.
//
// Usage: go run ./tools/prose [file or directory …]. Without arguments it reads every file that git
// tracks.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	findings, err := run(context.Background(), os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(2)
	}
	for _, f := range findings {
		fmt.Println(f)
	}
	if len(findings) > 0 {
		fmt.Fprintf(os.Stderr, "prose: %d findings\n", len(findings))
		os.Exit(1)
	}
}

// run checks the tracked files in the given paths, or all tracked files if there are no paths.
func run(ctx context.Context, paths []string) ([]Finding, error) {
	files, err := tracked(ctx, paths)
	if err != nil {
		return nil, err
	}

	var findings []Finding
	for _, file := range files {
		if generated(file) {
			continue
		}
		source, err := os.ReadFile(file) //nolint:gosec // a file that git tracks
		if err != nil {
			return nil, fmt.Errorf("read a tracked file: %w", err)
		}
		findings = append(findings, Check(file, source)...)
	}
	return findings, nil
}

// tracked lists the files that git tracks, and the untracked files that git does not ignore.
func tracked(ctx context.Context, paths []string) ([]string, error) {
	args := append([]string{"ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"}, paths...)
	out, err := exec.CommandContext(ctx, "git", args...).Output() //nolint:gosec // the caller chooses the paths
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}

	var files []string
	for file := range strings.SplitSeq(string(out), "\x00") {
		//nolint:gosec // a file that git tracks
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
			files = append(files, file)
		}
	}
	return files, nil
}

// generated reports whether to skip the file, because a program writes it or because it contains
// the rejected phrases on purpose.
func generated(file string) bool {
	file = filepath.ToSlash(file)
	return strings.HasPrefix(file, "terraform/provider/docs/") || file == "docs/benchmarks.md" ||
		strings.HasPrefix(file, "tools/prose/") || strings.Contains(file, "/testdata/")
}
