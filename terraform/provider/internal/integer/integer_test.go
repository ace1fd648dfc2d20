package integer_test

import (
	"math/big"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr/xattr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/terraform/provider/internal/integer"
)

// receive converts a number that Terraform sends. It returns the value, and the text of the
// validation error or "".
func receive(t *testing.T, sent any) (integer.Value, string) {
	t.Helper()
	got, err := integer.Type{}.ValueFromTerraform(t.Context(), tftypes.NewValue(tftypes.Number, sent))
	require.NoError(t, err)
	value, ok := got.(integer.Value)
	require.True(t, ok)

	var resp xattr.ValidateAttributeResponse
	value.ValidateAttribute(t.Context(), xattr.ValidateAttributeRequest{Path: path.Root("limit")}, &resp)
	if len(resp.Diagnostics) == 0 {
		return value, ""
	}
	require.Len(t, resp.Diagnostics, 1)
	return value, resp.Diagnostics[0].Detail()
}

func TestType(t *testing.T) {
	t.Parallel()
	t.Run("accepts an integer", func(t *testing.T) {
		t.Parallel()
		value, refusal := receive(t, big.NewFloat(33))
		require.Empty(t, refusal)
		require.True(t, value.Equal(integer.Of(33)))
	})
	t.Run("accepts null", func(t *testing.T) {
		t.Parallel()
		value, refusal := receive(t, nil)
		require.Empty(t, refusal)
		require.True(t, value.Equal(integer.Null()))
	})
	t.Run("accepts an unknown number", func(t *testing.T) {
		t.Parallel()
		value, refusal := receive(t, tftypes.UnknownValue)
		require.Empty(t, refusal)
		require.True(t, value.IsUnknown())
	})
	t.Run("refuses a fraction", func(t *testing.T) {
		t.Parallel()
		value, refusal := receive(t, new(big.Float).Quo(big.NewFloat(100), big.NewFloat(3)))
		require.Contains(t, refusal, "must be an integer, but is 33.33333333")
		require.True(t, value.IsUnknown())
	})
	t.Run("refuses a number out of range", func(t *testing.T) {
		t.Parallel()
		huge, _, err := big.ParseFloat("1e30", 10, 512, big.ToNearestEven)
		require.NoError(t, err)
		value, refusal := receive(t, huge)
		require.Contains(t, refusal, "must be an integer, but is 1e+30")
		require.True(t, value.IsUnknown())
	})
}
