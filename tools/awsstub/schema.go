package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// document is the content of schema.json. The program in the folder refresh generates this file.
type document struct {
	Provider  *block            `json:"provider"`
	Resources map[string]*block `json:"resources"`
	Data      map[string]*block `json:"data"`
}

type block struct {
	Attributes map[string]*attribute `json:"attributes"`
	Blocks     map[string]*nested    `json:"blocks"`
}

type attribute struct {
	Type      json.RawMessage `json:"type"`
	Optional  bool            `json:"optional"`
	Required  bool            `json:"required"`
	Computed  bool            `json:"computed"`
	WriteOnly bool            `json:"write_only"`
}

type nested struct {
	Mode  string `json:"mode"`
	Min   int64  `json:"min"`
	Max   int64  `json:"max"`
	Block *block `json:"block"`
}

// modes returns the nesting mode with the given name.
func modes(mode string) (tfprotov6.SchemaNestedBlockNestingMode, error) {
	switch mode {
	case "single":
		return tfprotov6.SchemaNestedBlockNestingModeSingle, nil
	case "list":
		return tfprotov6.SchemaNestedBlockNestingModeList, nil
	case "set":
		return tfprotov6.SchemaNestedBlockNestingModeSet, nil
	default:
		return 0, fmt.Errorf("a block has the unknown mode %q", mode)
	}
}

// protocol converts the block to the plugin protocol.
func (b *block) protocol() (*tfprotov6.SchemaBlock, error) {
	out := &tfprotov6.SchemaBlock{}
	for _, name := range slices.Sorted(maps.Keys(b.Attributes)) {
		a := b.Attributes[name]
		typ, err := tftypes.ParseJSONType(a.Type) //nolint:staticcheck // no other function parses this notation
		if err != nil {
			return nil, fmt.Errorf("attribute %q: %w", name, err)
		}
		out.Attributes = append(out.Attributes, &tfprotov6.SchemaAttribute{
			Name: name, Type: typ, Optional: a.Optional, Required: a.Required, Computed: a.Computed,
			WriteOnly: a.WriteOnly, Sensitive: a.WriteOnly,
		})
	}
	for _, name := range slices.Sorted(maps.Keys(b.Blocks)) {
		n := b.Blocks[name]
		inner, err := n.Block.protocol()
		if err != nil {
			return nil, fmt.Errorf("block %q: %w", name, err)
		}
		mode, err := modes(n.Mode)
		if err != nil {
			return nil, fmt.Errorf("block %q: %w", name, err)
		}
		out.BlockTypes = append(out.BlockTypes, &tfprotov6.SchemaNestedBlock{TypeName: name, Block: inner,
			Nesting: mode, MinItems: n.Min, MaxItems: n.Max})
	}
	return out, nil
}

// at returns the attribute at a path. It returns nil if the path leads to a block, to an element of
// a repeated block, or to a value inside an attribute.
func (b *block) at(path *tftypes.AttributePath) *attribute {
	steps := path.Steps()
	for i, step := range steps {
		name, ok := step.(tftypes.AttributeName)
		if !ok {
			continue // an element of a repeated block
		}
		if a, ok := b.Attributes[string(name)]; ok {
			if i == len(steps)-1 {
				return a
			}
			return nil
		}
		inner, ok := b.Blocks[string(name)]
		if !ok {
			return nil
		}
		b = inner.Block
	}
	return nil
}
