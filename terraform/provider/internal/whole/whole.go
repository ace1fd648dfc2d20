// Package whole is a Terraform number without a fraction. The framework's own answers 100 / 3 with
// a fault of the provider; this one says what is wrong.
package whole

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

// Type is the attribute type of a whole number.
type Type struct{ basetypes.Int64Type }

// String names the type.
func (Type) String() string { return "whole.Type" }

// Equal tells whether other is the same type.
func (t Type) Equal(other attr.Type) bool {
	o, ok := other.(Type)
	return ok && t.Int64Type.Equal(o.Int64Type)
}

// ValueType returns what the type's values are.
func (Type) ValueType(context.Context) attr.Value { return Value{} }

// ValueFromInt64 makes a value.
func (Type) ValueFromInt64(_ context.Context, in basetypes.Int64Value) (basetypes.Int64Valuable, diag.Diagnostics) {
	return Value{Int64Value: in}, nil
}

// ValueFromTerraform makes a value of what Terraform sends. What is no whole number in range counts
// as unknown until it is refused.
func (t Type) ValueFromTerraform(ctx context.Context, in tftypes.Value) (attr.Value, error) {
	var number *big.Float
	if in.IsKnown() && !in.IsNull() {
		if err := in.As(&number); err != nil {
			return nil, fmt.Errorf("error reading a whole number: %w", err)
		}
		if _, accuracy := number.Int64(); accuracy != big.Exact {
			return Value{Int64Value: basetypes.NewInt64Unknown(), refused: number.Text('g', 10)}, nil
		}
	}
	value, err := t.Int64Type.ValueFromTerraform(ctx, in)
	if err != nil {
		return nil, fmt.Errorf("error reading a whole number: %w", err)
	}
	known, ok := value.(basetypes.Int64Value)
	if !ok {
		return nil, fmt.Errorf("a whole number is an Int64, and not a %T", value)
	}
	return Value{Int64Value: known}, nil
}

// Value is a whole number, null or unknown.
type Value struct {
	basetypes.Int64Value

	refused string // what was sent and is no whole number
}

// Of is the value of a number.
func Of(n int64) Value { return Value{Int64Value: basetypes.NewInt64Value(n)} }

// Null is no number.
func Null() Value { return Value{Int64Value: basetypes.NewInt64Null()} }

// Type returns [Type].
func (Value) Type(context.Context) attr.Type { return Type{} }

// Equal tells whether other is the same number.
func (v Value) Equal(other attr.Value) bool {
	o, ok := other.(Value)
	return ok && v.refused == o.refused && v.Int64Value.Equal(o.Int64Value)
}

// ValidateAttribute refuses what is no whole number.
func (v Value) ValidateAttribute(_ context.Context, request xattr.ValidateAttributeRequest,
	response *xattr.ValidateAttributeResponse) {
	if v.refused != "" {
		response.Diagnostics.AddAttributeError(request.Path, "Not a whole number",
			fmt.Sprintf("%s must be a whole number, and is %s: use floor or ceil.", request.Path, v.refused))
	}
}
