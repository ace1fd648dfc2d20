// Command prose checks how comments, messages and documentation read: the width of their lines, and
// words that make a reader stop. It prints one line per finding and fails if there is one.
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

// run checks the tracked files below the given paths, or all of them if there are no paths.
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

// tracked lists files that git tracks or would track.
func tracked(ctx context.Context, paths []string) ([]string, error) {
	args := append([]string{"ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"}, paths...)
	out, err := exec.CommandContext(ctx, "git", args...).Output() //nolint:gosec // the paths are the caller's
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

// generated reports whether a program writes the file, or it lists the words on purpose.
func generated(file string) bool {
	file = filepath.ToSlash(file)
	return strings.HasPrefix(file, "terraform/provider/docs/") || file == "docs/benchmarks.md" ||
		strings.HasPrefix(file, "tools/prose/") || strings.Contains(file, "/testdata/")
}
