package luascript

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Position is a line of a file.
type Position struct {
	File string
	Line int
}

// String returns "file:line".
func (p Position) String() string { return fmt.Sprintf("%s:%d", p.File, p.Line) }

// Source is a script as Redis receives it.
type Source struct {
	// File is the path of the script's own file.
	File string
	// Text is plain Lua.
	Text string

	lines []Position
}

// Position returns the file and the line from which a line of Text comes. Lines count from 1. If
// Text has no line with this number, Position returns the zero Position.
func (s Source) Position(line int) Position {
	if line < 1 || line > len(s.lines) {
		return Position{}
	}
	return s.lines[line-1]
}

// Compose reads a script's file and the files that it requires, and returns the composed script. An
// error names the file and the line.
func Compose(files fs.FS, file string) (Source, error) {
	folder, name := path.Split(strings.TrimSuffix(file, ".lua"))
	c := composer{files: files, folder: folder, definitions: make(definitions), state: make(map[string]loading)}
	if err := c.load(name, Position{}); err != nil {
		return Source{}, err
	}

	script := c.loaded[len(c.loaded)-1]
	if err := script.header.complete(script.file); err != nil {
		return Source{}, err
	}

	return c.compose(script)
}

// MustCompose is [Compose] for files that are embedded in the program. It panics on an error.
func MustCompose(files fs.FS, file string) Source {
	source, err := Compose(files, file)
	if err != nil {
		panic(err)
	}
	return source
}

// loading is the progress of loading a file.
type loading int

const (
	absent loading = iota
	started
	finished
)

// composer collects the files of one script.
type composer struct {
	files       fs.FS
	folder      string
	definitions definitions
	loaded      []source
	state       map[string]loading
}

// load loads a file, after the files that it requires. The argument from is the position of the
// line that requires the file, or the zero Position for the script's own file.
func (c *composer) load(name string, from Position) error {
	switch c.state[name] {
	case finished:
		return nil
	case started:
		return fmt.Errorf("%s: %q requires itself", from, name)
	case absent:
	}
	c.state[name] = started

	file := path.Join(c.folder, name+".lua")
	text, err := fs.ReadFile(c.files, file)
	switch {
	case errors.Is(err, fs.ErrNotExist) && from != Position{}:
		return fmt.Errorf("%s: requires %q, but there is no file %s", from, name, file)
	case err != nil:
		return fmt.Errorf("error reading a script: %w", err)
	}

	s, err := parse(file, string(text))
	if err != nil {
		return err
	}
	for _, r := range s.header.requires {
		if err := c.load(r.name, Position{file, r.line}); err != nil {
			return err
		}
	}
	if err := c.definitions.add(s.definitions); err != nil {
		return err
	}

	c.loaded = append(c.loaded, s)
	c.state[name] = finished
	return nil
}

// compose expands the loaded files into one text. The script's own file is the last. If the script
// has an interpreter line ("#!lua flags=…"), it remains the first line.
func (c *composer) compose(script source) (Source, error) {
	out := Source{File: script.file}
	var text strings.Builder
	if script.interpreter != "" {
		text.WriteString(script.interpreter + "\n")
		out.lines = append(out.lines, Position{script.file, 1})
	}

	for _, s := range c.loaded {
		e := expander{file: s.file, definitions: c.definitions, header: script.header}
		code, err := e.expand(s.code)
		if err != nil {
			return Source{}, err
		}
		if strings.TrimSpace(code) == "" {
			continue
		}

		lines := strings.Split(strings.TrimRight(code, " \n"), "\n")
		skip := 0
		if s.interpreter != "" {
			skip = 1
		}
		for i, line := range lines[skip:] {
			text.WriteString(strings.TrimRight(line, " ") + "\n")
			out.lines = append(out.lines, Position{s.file, skip + i + 1})
		}
	}

	out.Text = text.String()
	return out, nil
}

// definitions maps each name that a script may use to its definition.
type definitions map[string]definition

func (d definitions) add(more []definition) error {
	for _, m := range more {
		if first, exists := d[m.name]; exists {
			return fmt.Errorf("%s: %s is already defined at %s", m.at, m.name, first.at)
		}
		d[m.name] = m
	}
	return nil
}

// definition is a name and the tokens that replace the name.
type definition struct {
	name       string // "$fence", or "${FENCE}" for a constant
	parameters []string
	body       []token
	at         Position
}

func (d definition) constant() bool { return strings.HasPrefix(d.name, "${") }

func (d definition) parameter(name string) int { return slices.Index(d.parameters, name) }
