package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// kind is the schema of a resource type, a data source type or the provider's configuration.
type kind struct {
	block  *block
	schema *tfprotov6.Schema
}

func (k kind) typ() tftypes.Type { return k.schema.ValueType() }

// server implements the methods that `tofu validate`, `plan`, `apply` and `test` call. The embedded
// interface is nil: every other method panics.
type server struct {
	tfprotov6.ProviderServer
	provider  kind
	resources map[string]kind
	data      map[string]kind
}

func newServer(text []byte) (*server, error) {
	var doc document
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("error reading the schema: %w", err)
	}
	s := &server{}
	var err error
	if s.provider, err = kindOf(doc.Provider); err != nil {
		return nil, fmt.Errorf("provider: %w", err)
	}
	if s.resources, err = kindsOf(doc.Resources); err != nil {
		return nil, err
	}
	s.data, err = kindsOf(doc.Data)
	return s, err
}

func kindOf(b *block) (kind, error) {
	p, err := b.protocol()
	return kind{block: b, schema: &tfprotov6.Schema{Block: p}}, err
}

func kindsOf(blocks map[string]*block) (map[string]kind, error) {
	out := make(map[string]kind, len(blocks))
	for name, b := range blocks {
		k, err := kindOf(b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out[name] = k
	}
	return out, nil
}

func schemas(kinds map[string]kind) map[string]*tfprotov6.Schema {
	out := make(map[string]*tfprotov6.Schema, len(kinds))
	for name, k := range kinds {
		out[name] = k.schema
	}
	return out
}

var capabilities = tfprotov6.ServerCapabilities{GetProviderSchemaOptional: true}

func (s *server) GetMetadata(context.Context, *tfprotov6.GetMetadataRequest) (*tfprotov6.GetMetadataResponse, error) {
	out := &tfprotov6.GetMetadataResponse{ServerCapabilities: &capabilities}
	for _, name := range slices.Sorted(maps.Keys(s.resources)) {
		out.Resources = append(out.Resources, tfprotov6.ResourceMetadata{TypeName: name})
	}
	for _, name := range slices.Sorted(maps.Keys(s.data)) {
		out.DataSources = append(out.DataSources, tfprotov6.DataSourceMetadata{TypeName: name})
	}
	return out, nil
}

func (s *server) GetProviderSchema(context.Context,
	*tfprotov6.GetProviderSchemaRequest) (*tfprotov6.GetProviderSchemaResponse, error) {
	return &tfprotov6.GetProviderSchemaResponse{
		ServerCapabilities: &capabilities, Provider: s.provider.schema, ResourceSchemas: schemas(s.resources),
		DataSourceSchemas: schemas(s.data),
	}, nil
}

func (s *server) GetResourceIdentitySchemas(context.Context,
	*tfprotov6.GetResourceIdentitySchemasRequest) (*tfprotov6.GetResourceIdentitySchemasResponse, error) {
	return &tfprotov6.GetResourceIdentitySchemasResponse{}, nil
}

func (s *server) ValidateProviderConfig(_ context.Context,
	q *tfprotov6.ValidateProviderConfigRequest) (*tfprotov6.ValidateProviderConfigResponse, error) {
	return &tfprotov6.ValidateProviderConfigResponse{PreparedConfig: q.Config}, nil
}

func (s *server) ConfigureProvider(context.Context,
	*tfprotov6.ConfigureProviderRequest) (*tfprotov6.ConfigureProviderResponse, error) {
	return &tfprotov6.ConfigureProviderResponse{}, nil
}

func (s *server) StopProvider(context.Context,
	*tfprotov6.StopProviderRequest) (*tfprotov6.StopProviderResponse, error) {
	return &tfprotov6.StopProviderResponse{}, nil
}

func (s *server) ValidateResourceConfig(_ context.Context,
	q *tfprotov6.ValidateResourceConfigRequest) (*tfprotov6.ValidateResourceConfigResponse, error) {
	found, err := s.resources[q.TypeName].readOnly(q.Config)
	return &tfprotov6.ValidateResourceConfigResponse{Diagnostics: found}, err
}

func (s *server) ValidateDataResourceConfig(_ context.Context,
	q *tfprotov6.ValidateDataResourceConfigRequest) (*tfprotov6.ValidateDataResourceConfigResponse, error) {
	found, err := s.data[q.TypeName].readOnly(q.Config)
	return &tfprotov6.ValidateDataResourceConfigResponse{Diagnostics: found}, err
}

func (s *server) UpgradeResourceState(_ context.Context,
	q *tfprotov6.UpgradeResourceStateRequest) (*tfprotov6.UpgradeResourceStateResponse, error) {
	typ := s.resources[q.TypeName].typ()
	ignore := tfprotov6.UnmarshalOpts{ValueFromJSONOpts: tftypes.ValueFromJSONOpts{IgnoreUndefinedAttributes: true}}
	v, err := q.RawState.UnmarshalWithOpts(typ, ignore)
	if err != nil {
		return nil, fmt.Errorf("error reading the state: %w", err)
	}
	state, err := tfprotov6.NewDynamicValue(typ, v)
	return &tfprotov6.UpgradeResourceStateResponse{UpgradedState: &state}, err
}

func (s *server) ReadResource(_ context.Context,
	q *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	return &tfprotov6.ReadResourceResponse{NewState: q.CurrentState}, nil
}

func (s *server) PlanResourceChange(_ context.Context,
	q *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	planned, err := s.resources[q.TypeName].planned(q.ProposedNewState)
	return &tfprotov6.PlanResourceChangeResponse{PlannedState: planned}, err
}

func (s *server) ApplyResourceChange(_ context.Context,
	q *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	state, err := s.resources[q.TypeName].filled(q.PlannedState)
	return &tfprotov6.ApplyResourceChangeResponse{NewState: state}, err
}

func (s *server) ReadDataSource(_ context.Context,
	q *tfprotov6.ReadDataSourceRequest) (*tfprotov6.ReadDataSourceResponse, error) {
	k := s.data[q.TypeName]
	planned, err := k.planned(q.Config)
	if err != nil {
		return nil, err
	}
	state, err := k.filled(planned)
	return &tfprotov6.ReadDataSourceResponse{State: state}, err
}
