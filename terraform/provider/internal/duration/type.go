package duration

import (
	"context"
	"fmt"
	"time"

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

// String returns the name of the type.
func (Type) String() string { return "duration.Type" }

// Equal reports whether other is the same type.
func (t Type) Equal(other attr.Type) bool {
	o, ok := other.(Type)
	return ok && t.StringType.Equal(o.StringType)
}

// ValueType returns an empty [Value], which is the Go type for the attribute's values.
func (Type) ValueType(context.Context) attr.Value { return Value{} }

// ValueFromString converts the framework's string to a [Value].
func (Type) ValueFromString(_ context.Context, in basetypes.StringValue) (basetypes.StringValuable, diag.Diagnostics) {
	return Value{in}, nil
}

// ValueFromTerraform converts a string of Terraform's protocol to a [Value].
func (t Type) ValueFromTerraform(ctx context.Context, in tftypes.Value) (attr.Value, error) {
	value, err := t.StringType.ValueFromTerraform(ctx, in)
	if err != nil {
		return nil, fmt.Errorf("error reading a duration: %w", err)
	}
	text, ok := value.(basetypes.StringValue)
	if !ok {
		return nil, fmt.Errorf("error reading a duration: the framework returned a %T", value)
	}
	return Value{text}, nil
}

// Value is a duration in the user's notation. It may be null or unknown.
type Value struct{ basetypes.StringValue }

// Of returns a value with the text that [Format] returns for the length.
func Of(length time.Duration) Value { return Value{basetypes.NewStringValue(Format(length))} }

// Null returns the null value.
func Null() Value { return Value{basetypes.NewStringNull()} }

// Type returns the attribute type of the value, which is always [Type].
func (Value) Type(context.Context) attr.Type { return Type{} }

// Equal reports whether other has the same text. [Value.StringSemanticEquals] compares lengths.
func (v Value) Equal(other attr.Value) bool {
	o, ok := other.(Value)
	return ok && v.StringValue.Equal(o.StringValue)
}

// Duration returns the length. It returns false if the value is null, unknown or not a duration.
func (v Value) Duration() (time.Duration, bool) {
	if v.IsNull() || v.IsUnknown() {
		return 0, false
	}
	length, err := Parse(v.ValueString())
	return length, err == nil
}

// StringSemanticEquals reports whether both values are durations of the same length.
func (v Value) StringSemanticEquals(_ context.Context, other basetypes.StringValuable) (bool, diag.Diagnostics) {
	o, ok := other.(Value)
	if !ok {
		return false, nil
	}
	mine, mineOK := v.Duration()
	theirs, theirsOK := o.Duration()
	return mineOK && theirsOK && mine == theirs, nil
}

// ValidateAttribute adds an error if the text is not a duration.
func (v Value) ValidateAttribute(_ context.Context, req xattr.ValidateAttributeRequest,
	resp *xattr.ValidateAttributeResponse) {
	if v.IsNull() || v.IsUnknown() {
		return
	}
	if _, err := Parse(v.ValueString()); err != nil {
		resp.Diagnostics.AddAttributeError(req.Path, "Not a duration", fmt.Sprintf("%s %v.", req.Path, err))
	}
}
