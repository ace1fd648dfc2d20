package whole_test

import (
	"math/big"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr/xattr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/terraform/provider/internal/whole"
)

func TestOnlyWholeNumbersInRangeAreTaken(t *testing.T) {
	t.Parallel()
	third := new(big.Float).Quo(big.NewFloat(100), big.NewFloat(3))
	huge, _, err := big.ParseFloat("1e30", 10, 512, big.ToNearestEven)
	require.NoError(t, err)
	for title, c := range map[string]struct {
		sent    any
		want    whole.Value
		refused string
	}{
		"a whole number":      {big.NewFloat(33), whole.Of(33), ""},
		"null":                {nil, whole.Null(), ""},
		"a third":             {third, whole.Value{}, "must be a whole number, and is 33.33333333"},
		"a number out of it":  {huge, whole.Value{}, "must be a whole number, and is 1e+30"},
		"not known until now": {tftypes.UnknownValue, whole.Value{}, ""},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			got, err := whole.Type{}.ValueFromTerraform(t.Context(), tftypes.NewValue(tftypes.Number, c.sent))
			require.NoError(t, err)
			value, ok := got.(whole.Value)
			require.True(t, ok)
			var answer xattr.ValidateAttributeResponse
			value.ValidateAttribute(t.Context(), xattr.ValidateAttributeRequest{Path: path.Root("limit")}, &answer)
			if c.refused != "" {
				require.True(t, value.IsUnknown(), "nothing is made of it")
				require.Len(t, answer.Diagnostics, 1)
				require.Contains(t, answer.Diagnostics[0].Detail(), c.refused)
				return
			}
			require.Empty(t, answer.Diagnostics)
			if title != "not known until now" {
				require.True(t, value.Equal(c.want))
			}
		})
	}
}
