// Package integer provides a Terraform number type without fractions. For a fraction such as 0.5,
// the framework's integer type reports a bug in the provider. This package's type reports the
// invalid value at its attribute.
package integer

import (
	"context"
	"fmt"
	"math/big"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/attr/xattr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

var (
	_ basetypes.Int64Typable      = Type{}
	_ basetypes.Int64Valuable     = Value{}
	_ xattr.ValidateableAttribute = Value{}
)

// Type is the attribute type of an integer in the range of int64.
type Type struct{ basetypes.Int64Type }

// String returns the name of the type.
func (Type) String() string { return "integer.Type" }

// Equal reports whether other is the same type.
func (t Type) Equal(other attr.Type) bool {
	o, ok := other.(Type)
	return ok && t.Int64Type.Equal(o.Int64Type)
}

// ValueType returns an empty [Value], which is the Go type for the attribute's values.
func (Type) ValueType(context.Context) attr.Value { return Value{} }

// ValueFromInt64 converts the framework's integer to a [Value].
func (Type) ValueFromInt64(_ context.Context, in basetypes.Int64Value) (basetypes.Int64Valuable, diag.Diagnostics) {
	return Value{Int64Value: in}, nil
}

// ValueFromTerraform converts a number of Terraform's protocol to a [Value]. A number that is not
// an integer in range becomes unknown; [Value.ValidateAttribute] later reports the error.
func (t Type) ValueFromTerraform(ctx context.Context, in tftypes.Value) (attr.Value, error) {
	if in.IsKnown() && !in.IsNull() {
		var number *big.Float
		if err := in.As(&number); err != nil {
			return nil, fmt.Errorf("error reading an integer: %w", err)
		}
		if _, accuracy := number.Int64(); accuracy != big.Exact {
			return Value{Int64Value: basetypes.NewInt64Unknown(), refused: number.Text('g', 10)}, nil
		}
	}

	value, err := t.Int64Type.ValueFromTerraform(ctx, in)
	if err != nil {
		return nil, fmt.Errorf("error reading an integer: %w", err)
	}
	n, ok := value.(basetypes.Int64Value)
	if !ok {
		return nil, fmt.Errorf("error reading an integer: the framework returned a %T", value)
	}
	return Value{Int64Value: n}, nil
}

// Value is an integer. It may be null or unknown.
type Value struct {
	basetypes.Int64Value

	refused string // the number that Terraform sent, if it is not an integer in range
}

// Of returns the value n.
func Of(n int64) Value { return Value{Int64Value: basetypes.NewInt64Value(n)} }

// Null returns the null value.
func Null() Value { return Value{Int64Value: basetypes.NewInt64Null()} }

// Type returns the attribute type of the value, which is always [Type].
func (Value) Type(context.Context) attr.Type { return Type{} }

// Equal reports whether other is the same value.
func (v Value) Equal(other attr.Value) bool {
	o, ok := other.(Value)
	return ok && v.refused == o.refused && v.Int64Value.Equal(o.Int64Value)
}

// ValidateAttribute adds an error if the number is not an integer in range.
func (v Value) ValidateAttribute(_ context.Context, req xattr.ValidateAttributeRequest,
	resp *xattr.ValidateAttributeResponse) {
	if v.refused != "" {
		resp.Diagnostics.AddAttributeError(req.Path, "Not an integer",
			fmt.Sprintf("%s must be an integer, but is %s; use floor or ceil.", req.Path, v.refused))
	}
}
