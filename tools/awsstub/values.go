package main

import (
	"fmt"
	"math/big"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// readOnly returns an error for each configured attribute that only the provider may set. OpenTofu
// leaves this check to providers.
func (k kind) readOnly(config *tfprotov6.DynamicValue) ([]*tfprotov6.Diagnostic, error) {
	v, err := config.Unmarshal(k.typ())
	if err != nil {
		return nil, fmt.Errorf("error reading the configuration: %w", err)
	}
	var found []*tfprotov6.Diagnostic
	err = tftypes.Walk(v, func(path *tftypes.AttributePath, v tftypes.Value) (bool, error) {
		a := k.block.at(path)
		if a == nil {
			return true, nil
		}
		if a.Computed && !a.Optional && !a.Required && !v.IsNull() {
			found = append(found, &tfprotov6.Diagnostic{
				Severity: tfprotov6.DiagnosticSeverityError, Attribute: path,
				Summary: "Value for unconfigurable attribute",
				Detail:  "The provider sets this attribute; a configuration cannot set it.",
			})
		}
		return false, nil
	})
	return found, err
}

// planned returns the proposed state. Computed attributes without a value become unknown.
func (k kind) planned(proposed *tfprotov6.DynamicValue) (*tfprotov6.DynamicValue, error) {
	return k.transform(proposed, func(path *tftypes.AttributePath, v tftypes.Value) (tftypes.Value, error) {
		if a := k.block.at(path); a == nil || !a.Computed || !v.IsNull() {
			return v, nil
		}
		return tftypes.NewValue(v.Type(), tftypes.UnknownValue), nil
	})
}

// filled replaces each unknown value. An unknown string becomes "stub-" and the attribute's name.
// Any other unknown value becomes 0, false, an empty collection or null, depending on its type.
func (k kind) filled(planned *tfprotov6.DynamicValue) (*tfprotov6.DynamicValue, error) {
	return k.transform(planned, func(path *tftypes.AttributePath, v tftypes.Value) (tftypes.Value, error) {
		if v.IsKnown() {
			return v, nil
		}
		name := "value"
		for _, step := range path.Steps() {
			if n, ok := step.(tftypes.AttributeName); ok {
				name = string(n)
			}
		}
		return invented(v.Type(), name), nil
	})
}

func (k kind) transform(in *tfprotov6.DynamicValue,
	change func(*tftypes.AttributePath, tftypes.Value) (tftypes.Value, error)) (*tfprotov6.DynamicValue, error) {
	v, err := in.Unmarshal(k.typ())
	if err != nil {
		return nil, fmt.Errorf("error reading a value: %w", err)
	}
	if v.IsNull() {
		return in, nil // a deletion
	}
	if v, err = tftypes.Transform(v, change); err != nil {
		return nil, fmt.Errorf("error changing a value: %w", err)
	}
	out, err := tfprotov6.NewDynamicValue(k.typ(), v)
	return &out, err
}

func invented(typ tftypes.Type, name string) tftypes.Value {
	switch {
	case typ.Is(tftypes.String):
		return tftypes.NewValue(typ, "stub-"+name)
	case typ.Is(tftypes.Number):
		return tftypes.NewValue(typ, big.NewFloat(0))
	case typ.Is(tftypes.Bool):
		return tftypes.NewValue(typ, false)
	case typ.Is(tftypes.List{}), typ.Is(tftypes.Set{}):
		return tftypes.NewValue(typ, []tftypes.Value{})
	case typ.Is(tftypes.Map{}):
		return tftypes.NewValue(typ, map[string]tftypes.Value{})
	default:
		return tftypes.NewValue(typ, nil)
	}
}
