package main

import (
	"fmt"
	"regexp"
	"strings"
)

// The generated JavaScript has a class and a function for each block. In the class, a comment with
// flags precedes each member. The function states for each member whether it is a block, and
// whether it is a list, a set or a map. These patterns match the classes, the comments and the
// functions.
var (
	classPattern    = regexp.MustCompile(`(?m)^class (\w+) extends cdktn\.(\w+) \{`)
	memberPattern   = regexp.MustCompile(`(?m)^\s*// (\S+) - computed: (true|false), optional: (true|false), required: (true|false)`)
	newPattern      = regexp.MustCompile(`= new ([\w.]+)\(this, "([^"]+)"(?:, (true|false))?\);`)
	getPattern      = regexp.MustCompile(`return (?:cdktn\.Token\.\w+\()?(cdktn\.Fn\.tolist\()?(?:cdktn\.[\w.]+\()*this\.get(\w+)Attribute\('([^']+)'\)`)
	anyPattern      = regexp.MustCompile(`return (cdktn\.Fn\.tolist\()?this\.interpolationForAttribute\('([^']+)'\)`)
	functionPattern = regexp.MustCompile(`(?m)^function (\w+)ToHclTerraform\(struct\) \{`)
	entryPattern    = regexp.MustCompile(`(?s)(\w+): \{\s*value: [^\n]*\n\s*isBlock: (true|false),\s*type: "(\w+)",\s*storageClassType: "([^"]*)"`)
	versionPattern  = regexp.MustCompile(`providerVersion: '([^']+)'`)
)

// member is an attribute or a block of a class.
type member struct {
	name                         string
	computed, optional, required bool
	class                        string // the class of a nested block or object, or ""
	getter                       string // String, Number, List, StringMap, …
	set                          bool
}

// nesting describes whether a member is a block, and whether it is a list, a set or a map. The
// parser reads it from the function of the block that contains the member.
type nesting struct {
	isBlock bool
	mode    string // list, set, map, struct
	storage string
}

// source is a parsed file.
type source struct {
	version string
	main    string              // the class of the resource
	classes map[string][]member // by the class's name
	nesting map[string]map[string]nesting
}

func parse(text string) (*source, error) {
	text, _, _ = strings.Cut(text, "//# sourceMappingURL")
	s := &source{classes: map[string][]member{}, nesting: map[string]map[string]nesting{}}
	if m := versionPattern.FindStringSubmatch(text); m != nil {
		s.version = m[1]
	}
	found := classPattern.FindAllStringSubmatchIndex(text, -1)
	for i, m := range found {
		end := len(text)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		if err := s.class(text[m[2]:m[3]], text[m[4]:m[5]], text[m[1]:end]); err != nil {
			return nil, err
		}
	}
	for _, m := range functionPattern.FindAllStringSubmatchIndex(text, -1) {
		body, _, _ := strings.Cut(text[m[1]:], "\n}\n")
		s.nesting[text[m[2]:m[3]]] = entries(body)
	}
	if s.main == "" {
		return nil, fmt.Errorf("the file declares no resource")
	}
	return s, nil
}

func (s *source) class(name, base, body string) error {
	switch base {
	case "TerraformResource", "TerraformDataSource", "TerraformProvider", "TerraformEphemeralResource":
		s.main = name
		if _, attributes, found := strings.Cut(body, "synthesizeHclAttributes()"); found {
			s.nesting[""] = entries(attributes)
		}
	}
	if base == "TerraformProvider" {
		return nil // the provider's class has no getters; see settings
	}
	body, _, _ = strings.Cut(body, "\nexports.")
	found := memberPattern.FindAllStringSubmatchIndex(body, -1)
	for i, q := range found {
		end := len(body)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		is := func(group int) bool { return body[q[2*group]:q[2*group+1]] == "true" }
		m := member{name: body[q[2]:q[3]], computed: is(2), optional: is(3), required: is(4)}
		if !m.typed(body[q[1]:end]) {
			return fmt.Errorf("%s.%s has an unknown getter", name, m.name)
		}
		s.classes[name] = append(s.classes[name], m)
	}
	return nil
}

// typed sets the member's type from the code below its comment. It returns false if no pattern
// matches the code.
func (m *member) typed(code string) bool {
	if n := newPattern.FindStringSubmatch(code); n != nil && n[2] == m.name {
		if builtin, is := strings.CutPrefix(n[1], "cdktn."); is {
			m.getter = builtin
		} else {
			m.class = n[1]
		}
		m.set = n[3] == "true"
		return true
	}
	if g := getPattern.FindStringSubmatch(code); g != nil {
		m.getter, m.set = g[2], g[1] != ""
		return true
	}
	if g := anyPattern.FindStringSubmatch(code); g != nil {
		m.getter, m.set = "Any", g[1] != ""
		return true
	}
	return false
}

func entries(text string) map[string]nesting {
	out := map[string]nesting{}
	for _, m := range entryPattern.FindAllStringSubmatch(text, -1) {
		out[m[1]] = nesting{isBlock: m[2] == "true", mode: m[3], storage: m[4]}
	}
	return out
}
