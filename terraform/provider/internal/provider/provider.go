// Package provider implements the Terraform provider sluicehq/sluice.
package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/resource"
)

// sluice implements the provider.
type sluice struct {
	version string
	getenv  func(string) string
}

var (
	_ provider.ProviderWithFunctions     = (*sluice)(nil)
	_ provider.ProviderWithListResources = (*sluice)(nil)
	_ provider.ProviderWithActions       = (*sluice)(nil)
)

// New returns a constructor of the provider. The provider reads arguments that are missing in the
// provider block from environment variables, with getenv.
func New(version string, getenv func(string) string) func() provider.Provider {
	return func() provider.Provider { return &sluice{version: version, getenv: getenv} }
}

// Metadata implements provider.Provider.
func (s *sluice) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName, resp.Version = "sluice", s.version
}

// Resources implements provider.Provider.
func (s *sluice) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{func() resource.Resource { return &policyResource{} }}
}

// DataSources implements provider.Provider.
func (s *sluice) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{
		func() datasource.DataSource { return &policySource{} },
		func() datasource.DataSource { return &policiesSource{} },
		func() datasource.DataSource { return &decisionSource{} },
	}
}

// Functions implements provider.ProviderWithFunctions.
func (s *sluice) Functions(context.Context) []func() function.Function {
	return []func() function.Function{
		func() function.Function { return rateFunction{} },
		func() function.Function { return worstCaseFunction{} },
	}
}

// ListResources implements provider.ProviderWithListResources. List resources need Terraform 1.14
// or later; earlier versions and OpenTofu ignore them.
func (s *sluice) ListResources(context.Context) []func() list.ListResource {
	return []func() list.ListResource{func() list.ListResource { return &policyList{} }}
}

// Actions implements provider.ProviderWithActions. Actions need Terraform 1.14 or later; earlier
// versions and OpenTofu ignore them.
func (s *sluice) Actions(context.Context) []func() action.Action {
	return []func() action.Action{func() action.Action { return &resetAction{} }}
}
