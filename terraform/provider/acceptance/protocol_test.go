package acceptance

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/terraform/provider/internal/provider"
)

// server is the provider as a server of Terraform's protocol. Tests call it directly to test list
// resources and actions, because OpenTofu and Terraform before 1.14 do not support these.
type server interface {
	tfprotov6.ProviderServer
	tfprotov6.ListResourceServer
	tfprotov6.ActionServer
}

// configured returns a provider with a valid provider block.
func configured(t *testing.T) server {
	t.Helper()
	provider6, err := providerserver.NewProtocol6WithError(provider.New("test", environment())())()
	require.NoError(t, err)
	s, ok := provider6.(server)
	require.True(t, ok)
	all, err := s.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	require.NoError(t, err)
	resp, err := s.ConfigureProvider(t.Context(),
		&tfprotov6.ConfigureProviderRequest{TerraformVersion: "1.14.0", Config: config(t, all.Provider, nil)})
	require.NoError(t, err)
	require.Empty(t, resp.Diagnostics)
	return s
}

// config returns the value of a block with the given attributes. All other attributes are null.
func config(t *testing.T, schema *tfprotov6.Schema, given map[string]string) *tfprotov6.DynamicValue {
	t.Helper()
	kind, ok := schema.ValueType().(tftypes.Object)
	require.True(t, ok)
	values := make(map[string]tftypes.Value, len(kind.AttributeTypes))
	for name, attribute := range kind.AttributeTypes {
		values[name] = tftypes.NewValue(attribute, nil)
		if text, is := given[name]; is {
			values[name] = tftypes.NewValue(attribute, text)
		}
	}
	value, err := tfprotov6.NewDynamicValue(kind, tftypes.NewValue(kind, values))
	require.NoError(t, err)
	return &value
}

func TestListResource(t *testing.T) {
	t.Parallel()
	t.Run("finds policies by prefix", func(t *testing.T) {
		t.Parallel()
		prefix := name("query")
		for _, suffix := range []string{"-a", "-b", "-c"} {
			put(t, elsewhere(prefix+suffix, 7))
			removeLater(t, prefix+suffix)
		}
		s := configured(t)
		all, err := s.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
		require.NoError(t, err)
		for _, complete := range []bool{false, true} {
			for limit, want := range map[int64][]string{100: {"-a", "-b", "-c"}, 2: {"-a", "-b"}} {
				stream, err := s.ListResource(t.Context(), &tfprotov6.ListResourceRequest{
					TypeName: "sluice_limiter_policy", Limit: limit, IncludeResource: complete,
					Config: config(t, all.ListResourceSchemas["sluice_limiter_policy"],
						map[string]string{"name_prefix": prefix}),
				})
				require.NoError(t, err)
				var found []string
				for result := range stream.Results {
					require.Empty(t, result.Diagnostics)
					found = append(found, result.DisplayName[len(prefix):])
					kind := tftypes.Object{AttributeTypes: map[string]tftypes.Type{"name": tftypes.String}}
					identity, err := result.Identity.IdentityData.Unmarshal(kind)
					require.NoError(t, err)
					require.Contains(t, identity.String(), result.DisplayName)
					require.Equal(t, complete, result.Resource != nil)
				}
				require.Equal(t, want, found)
			}
		}
	})
}

func TestResetAction(t *testing.T) {
	t.Parallel()
	t.Run("resets a key to its full limit", func(t *testing.T) {
		t.Parallel()
		n, key := name("reset"), name("key")
		put(t, elsewhere(n, 1))
		removeLater(t, n)
		_, err := connect(t).Check(t.Context(), client.Check{Policy: n, Key: key})
		require.NoError(t, err)

		s := configured(t)
		all, err := s.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
		require.NoError(t, err)
		reset := func(policy string) []*tfprotov6.Diagnostic {
			stream, err := s.InvokeAction(t.Context(), &tfprotov6.InvokeActionRequest{
				ActionType: "sluice_limit_reset", Config: config(t, all.ActionSchemas["sluice_limit_reset"].Schema,
					map[string]string{"policy": policy, "key": key}),
			})
			require.NoError(t, err)
			for event := range stream.Events {
				if completed, is := event.Type.(tfprotov6.CompletedInvokeActionEventType); is {
					return completed.Diagnostics
				}
			}
			require.Fail(t, "the action did not complete")
			return nil
		}
		require.Empty(t, reset(n))
		d, err := connect(t).Peek(t.Context(), n, key)
		require.NoError(t, err)
		require.True(t, d.Allowed)

		refused := reset("no/policy")
		require.Len(t, refused, 1)
		require.Contains(t, refused[0].Detail, "policy must")
	})
}
