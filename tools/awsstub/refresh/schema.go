package main

import "strings"

type block struct {
	Attributes map[string]*attribute `json:"attributes,omitempty"`
	Blocks     map[string]*nested    `json:"blocks,omitempty"`
}

type attribute struct {
	Type      any  `json:"type"`
	Optional  bool `json:"optional,omitempty"`
	Required  bool `json:"required,omitempty"`
	Computed  bool `json:"computed,omitempty"`
	WriteOnly bool `json:"write_only,omitempty"`
}

type nested struct {
	Mode  string `json:"mode"`
	Min   int    `json:"min,omitempty"`
	Max   int    `json:"max,omitempty"`
	Block *block `json:"block"`
}

// top returns the schema of the resource.
func (s *source) top() *block { return s.block(s.main, "") }

// settings returns the schema of the provider's configuration. Its members have no getters; their
// nesting determines the schema.
func (s *source) settings(function string) *block {
	b := &block{Attributes: map[string]*attribute{}, Blocks: map[string]*nested{}}
	for name, how := range s.nesting[function] {
		if how.isBlock {
			b.Blocks[name] = &nested{Mode: how.mode, Block: s.settings(lower(stem(how.storage)))}
			continue
		}
		b.Attributes[name] = &attribute{Type: how.storageType(), Optional: true}
	}
	return b
}

func (n nesting) storageType() any {
	switch n.storage {
	case "number":
		return "number"
	case "boolean":
		return "bool"
	case "stringList":
		return []any{n.mode, "string"}
	case "stringMap":
		return []any{"map", "string"}
	default:
		return "string"
	}
}

func (s *source) block(class, function string) *block {
	b := &block{Attributes: map[string]*attribute{}, Blocks: map[string]*nested{}}
	for _, m := range s.classes[class] {
		how, known := s.nesting[function][m.name]
		if m.class == "" || !known || !how.isBlock || m.computed || how.mode == "map" {
			b.Attributes[m.name] = &attribute{
				Type: s.typeOf(m, how, known), Optional: m.optional, Required: m.required, Computed: m.computed,
				WriteOnly: strings.HasSuffix(m.name, "_wo"),
			}
			continue
		}
		n := &nested{Mode: how.mode, Block: s.block(stem(m.class)+"OutputReference", lower(stem(m.class)))}
		switch {
		case how.mode == "struct":
			n.Mode = "single"
		case strings.HasSuffix(m.class, "OutputReference"):
			n.Max = 1
		}
		if m.required {
			n.Min = 1
		}
		b.Blocks[m.name] = n
	}
	return b
}

// typeOf returns the type in the notation of `tofu providers schema -json`.
func (s *source) typeOf(m member, how nesting, known bool) any {
	collection := "list"
	if m.set || known && how.mode == "set" {
		collection = "set"
	}
	if m.class != "" {
		object := s.object(m.class)
		switch {
		case known && how.mode == "struct":
			return object
		case strings.HasSuffix(m.class, "Map"):
			return []any{"map", object}
		}
		return []any{collection, object}
	}
	if known && how.storage == "stringListList" {
		return []any{collection, []any{"list", "string"}}
	}
	switch m.getter {
	case "String":
		return "string"
	case "Number":
		return "number"
	case "Boolean":
		return "bool"
	case "List":
		return []any{collection, "string"}
	case "NumberList":
		return []any{collection, "number"}
	case "StringMap":
		return []any{"map", "string"}
	case "NumberMap":
		return []any{"map", "number"}
	case "BooleanMap":
		return []any{"map", "bool"}
	case "StringMapList":
		return []any{collection, []any{"map", "string"}}
	default:
		return "dynamic"
	}
}

// object returns the object type of a nested attribute.
func (s *source) object(class string) any {
	members := map[string]any{}
	for _, m := range s.classes[stem(class)+"OutputReference"] {
		how, known := s.nesting[lower(stem(class))][m.name]
		members[m.name] = s.typeOf(m, how, known)
	}
	return []any{"object", members}
}

func stem(class string) string {
	for _, suffix := range []string{"OutputReference", "List", "Map"} {
		if s, found := strings.CutSuffix(class, suffix); found {
			return s
		}
	}
	return class
}

func lower(s string) string { return strings.ToLower(s[:1]) + s[1:] }
