package duration

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/attr/xattr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

var (
	_ basetypes.StringTypable                    = Type{}
	_ basetypes.StringValuableWithSemanticEquals = Value{}
	_ xattr.ValidateableAttribute                = Value{}
)

// Type is the attribute type of a duration.
type Type struct{ basetypes.StringType }

// String names the type.
func (Type) String() string { return "duration.Type" }

// Equal tells whether other is the same type.
func (t Type) Equal(other attr.Type) bool {
	o, ok := other.(Type)
	return ok && t.StringType.Equal(o.StringType)
}

// ValueType returns what the type's values are.
func (Type) ValueType(context.Context) attr.Value { return Value{} }

// ValueFromString makes a value.
func (Type) ValueFromString(_ context.Context, in basetypes.StringValue) (basetypes.StringValuable, diag.Diagnostics) {
	return Value{in}, nil
}

// ValueFromTerraform makes a value of what Terraform sends.
func (t Type) ValueFromTerraform(ctx context.Context, in tftypes.Value) (attr.Value, error) {
	value, err := t.StringType.ValueFromTerraform(ctx, in)
	if err != nil {
		return nil, fmt.Errorf("error reading a duration: %w", err)
	}
	text, ok := value.(basetypes.StringValue)
	if !ok {
		return nil, fmt.Errorf("a duration is a string, and not a %T", value)
	}
	return Value{text}, nil
}

// Value is a duration, null or unknown.
type Value struct{ basetypes.StringValue }

// Of is the value of some milliseconds, as [Format] writes them.
func Of(ms int64) Value { return Value{basetypes.NewStringValue(Format(ms))} }

// Null is no duration.
func Null() Value { return Value{basetypes.NewStringNull()} }

// Type returns [Type].
func (Value) Type(context.Context) attr.Type { return Type{} }

// Equal tells whether other is the same text; for the same length see [Value.StringSemanticEquals].
func (v Value) Equal(other attr.Value) bool {
	o, ok := other.(Value)
	return ok && v.StringValue.Equal(o.StringValue)
}

// Milliseconds is the length, or false when it is null, unknown or no duration.
func (v Value) Milliseconds() (int64, bool) {
	if v.IsNull() || v.IsUnknown() {
		return 0, false
	}
	ms, err := Parse(v.ValueString())
	return ms, err == nil
}

// StringSemanticEquals tells whether both are equally long.
func (v Value) StringSemanticEquals(_ context.Context, other basetypes.StringValuable) (bool, diag.Diagnostics) {
	o, ok := other.(Value)
	if !ok {
		return false, nil
	}
	mine, fine := v.Milliseconds()
	theirs, fineToo := o.Milliseconds()
	return fine && fineToo && mine == theirs, nil
}

// ValidateAttribute refuses what is no duration.
func (v Value) ValidateAttribute(_ context.Context, request xattr.ValidateAttributeRequest,
	response *xattr.ValidateAttributeResponse) {
	if v.IsNull() || v.IsUnknown() {
		return
	}
	if _, err := Parse(v.ValueString()); err != nil {
		response.Diagnostics.AddAttributeError(request.Path, "Not a duration", fmt.Sprintf("%s %v.", request.Path, err))
	}
}
