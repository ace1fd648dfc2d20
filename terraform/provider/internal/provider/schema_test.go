package provider_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/sluicehq/sluice/terraform/provider/internal/provider"
)

func serve(t *testing.T) tfprotov6.ProviderServer {
	t.Helper()
	server, err := providerserver.NewProtocol6WithError(provider.New("test", func(string) string { return "" })())()
	require.NoError(t, err)
	return server
}

func schemas(t *testing.T) *tfprotov6.GetProviderSchemaResponse {
	t.Helper()
	resp, err := serve(t).GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	require.NoError(t, err)
	require.Empty(t, resp.Diagnostics)
	return resp
}

func TestSchema(t *testing.T) {
	t.Parallel()
	// If a secret's attribute is not marked as sensitive, Terraform prints the secret in every
	// plan.
	t.Run("marks every secret of the provider block as sensitive", func(t *testing.T) {
		t.Parallel()
		secrets := map[string]bool{"access_key": true, "secret_key": true, "session_token": true}
		for _, a := range schemas(t).Provider.Block.Attributes {
			require.Equal(t, secrets[a.Name], a.Sensitive, a.Name)
			delete(secrets, a.Name)
		}
		require.Empty(t, secrets)
	})

	// For an attribute with JSON in a string, a plan would show every change of whitespace.
	t.Run("has no attribute with JSON in a string", func(t *testing.T) {
		t.Parallel()
		var names []string
		var walk func([]*tfprotov6.SchemaAttribute)
		walk = func(attributes []*tfprotov6.SchemaAttribute) {
			for _, a := range attributes {
				names = append(names, a.Name)
				if a.NestedType != nil {
					walk(a.NestedType.Attributes)
					continue
				}
				require.False(t, a.Type.Is(tftypes.DynamicPseudoType), "%s accepts any type", a.Name)
			}
		}
		walk(schemas(t).ResourceSchemas["sluice_limiter_policy"].Block.Attributes)
		require.Contains(t, names, "window", "rules and overrides must have nested attributes")
		for _, name := range names {
			require.NotContains(t, name, "json")
		}
	})

	t.Run("describes every block and attribute", func(t *testing.T) {
		t.Parallel()
		resp := schemas(t)
		all := map[string]*tfprotov6.Schema{"the provider": resp.Provider}
		for name, s := range resp.ResourceSchemas {
			all["resource "+name] = s
		}
		for name, s := range resp.DataSourceSchemas {
			all["data source "+name] = s
		}
		for name, s := range resp.ListResourceSchemas {
			all["list resource "+name] = s
		}
		for name, s := range resp.ActionSchemas {
			all["action "+name] = s.Schema
		}
		require.Len(t, all, 1+1+3+1+1)
		for name, s := range all {
			require.NotEmpty(t, s.Block.Description, name)
			for _, a := range s.Block.Attributes {
				require.NotEmpty(t, a.Description, "%s of %s", a.Name, name)
			}
		}
	})

	// The framework validates a schema only when a caller requests the schema.
	t.Run("satisfies the framework", func(t *testing.T) {
		t.Parallel()
		server := serve(t)
		resp, err := server.GetMetadata(context.Background(), &tfprotov6.GetMetadataRequest{})
		require.NoError(t, err)
		require.Empty(t, resp.Diagnostics)
		require.Len(t, resp.Functions, 2)
		identities, err := server.GetResourceIdentitySchemas(t.Context(),
			&tfprotov6.GetResourceIdentitySchemasRequest{})
		require.NoError(t, err)
		require.Empty(t, identities.Diagnostics)
		require.Len(t, identities.IdentitySchemas, 1)
	})
}

func TestRelease(t *testing.T) {
	t.Parallel()
	t.Run("has a manifest with the protocol's version", func(t *testing.T) {
		t.Parallel()
		manifest, err := os.ReadFile(filepath.Join("..", "..", "terraform-registry-manifest.json"))
		require.NoError(t, err)
		require.JSONEq(t, `{"version": 1, "metadata": {"protocol_versions": ["6.0"]}}`, string(manifest))
	})

	// The registries accept a release only if its files have these names and the checksums are
	// signed.
	t.Run("is named and signed as the registries require", func(t *testing.T) {
		t.Parallel()
		text, err := os.ReadFile(filepath.Join("..", "..", ".goreleaser.yaml"))
		require.NoError(t, err)
		var release struct {
			Project string `yaml:"project_name"`
			Builds  []struct {
				Dir, Main, Binary string
				LDFlags           []string `yaml:"ldflags"`
			}
			Archives []struct {
				Formats []string
				Name    string `yaml:"name_template"`
			}
			Checksum struct {
				Name  string      `yaml:"name_template"`
				Files []extraFile `yaml:"extra_files"`
			}
			Signs   []struct{ Artifacts string }
			Release struct {
				Files []extraFile `yaml:"extra_files"`
			}
		}
		require.NoError(t, yaml.Unmarshal(text, &release))
		require.Equal(t, "terraform-provider-sluice", release.Project)
		require.Equal(t, "{{ .ProjectName }}_v{{ .Version }}", release.Builds[0].Binary)
		require.Contains(t, release.Builds[0].LDFlags[0], "-X main.version=", "main.go must have this variable")
		require.FileExists(t, filepath.Join("..", "..", "..", "..", release.Builds[0].Dir, release.Builds[0].Main,
			"main.go"))
		require.Equal(t, []string{"zip"}, release.Archives[0].Formats)
		require.Equal(t, "{{ .ProjectName }}_{{ .Version }}_{{ .Os }}_{{ .Arch }}", release.Archives[0].Name)
		require.Equal(t, "{{ .ProjectName }}_{{ .Version }}_SHA256SUMS", release.Checksum.Name)
		require.Equal(t, "checksum", release.Signs[0].Artifacts)
		for _, files := range [][]extraFile{release.Checksum.Files, release.Release.Files} {
			require.Equal(t, "{{ .ProjectName }}_{{ .Version }}_manifest.json", files[0].Name)
			require.FileExists(t, filepath.Join("..", "..", "..", "..", files[0].Glob))
		}
	})
}

type extraFile struct {
	Glob string `yaml:"glob"`
	Name string `yaml:"name_template"`
}
