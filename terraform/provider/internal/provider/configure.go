package provider

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/terraform/provider/internal/duration"
)

// Configure implements provider.Provider. A block with values that are known only after apply is no
// error: it makes no client, and what needs one during the plan says so.
func (s *sluice) Configure(ctx context.Context, request provider.ConfigureRequest, answer *provider.ConfigureResponse) {
	var block settings
	answer.Diagnostics.Append(request.Config.Get(ctx, &block)...)
	if answer.Diagnostics.HasError() || block.unknown() {
		return
	}
	r := role{}
	if !block.AssumeRole.IsNull() {
		answer.Diagnostics.Append(block.AssumeRole.As(ctx, &r, basetypes.ObjectAsOptions{})...)
	}
	s.fillIn(&block, &r, &answer.Diagnostics)
	if answer.Diagnostics.HasError() {
		return
	}
	c := s.connect(ctx, &block, &r, &answer.Diagnostics)
	if answer.Diagnostics.HasError() {
		return
	}
	answer.ResourceData, answer.DataSourceData, answer.ListResourceData, answer.ActionData = c, c, c, c
}

// fillIn takes what the block leaves out from the environment, and refuses what cannot be used.
func (s *sluice) fillIn(m *settings, r *role, diags *diag.Diagnostics) {
	for name, value := range map[string]*types.String{
		"SLUICE_ENDPOINT": &m.Endpoint, "SLUICE_REGION": &m.Region, "SLUICE_AUTH": &m.Auth,
		"SLUICE_PROFILE":         &m.Profile,
		"SLUICE_ASSUME_ROLE_ARN": &r.ARN, "SLUICE_ASSUME_ROLE_SESSION_NAME": &r.SessionName,
		"SLUICE_ASSUME_ROLE_EXTERNAL_ID": &r.ExternalID,
	} {
		if text := s.getenv(name); value.IsNull() && text != "" {
			*value = types.StringValue(text)
		}
	}
	// Credentials are taken from one place: a key of the block is never signed with a secret of the
	// environment.
	if m.AccessKey.IsNull() && m.Profile.IsNull() {
		m.AccessKey, m.SecretKey = types.StringValue(s.getenv("SLUICE_ACCESS_KEY")),
			types.StringValue(s.getenv("SLUICE_SECRET_KEY"))
		m.SessionToken = types.StringValue(s.getenv("SLUICE_SESSION_TOKEN"))
	}
	s.fillInNumbers(m, r, diags)
	if m.Endpoint.ValueString() == "" {
		diags.AddAttributeError(path.Root("endpoint"), "The endpoint is missing",
			"Set endpoint in the provider's block, or SLUICE_ENDPOINT, to the URL of the API: the output endpoint of Sluice's module.")
	}
	if (m.AccessKey.ValueString() == "") != (m.SecretKey.ValueString() == "") {
		diags.AddAttributeError(path.Root("access_key"), "Half of the credentials",
			"Static credentials need both access_key and secret_key.")
	}
	if !r.present() && !m.AssumeRole.IsNull() {
		diags.AddAttributeError(path.Root("assume_role").AtName("role_arn"), "The role is missing",
			"assume_role needs role_arn, here or in SLUICE_ASSUME_ROLE_ARN.")
	}
}

func (s *sluice) fillInNumbers(m *settings, r *role, diags *diag.Diagnostics) {
	for name, value := range map[string]*duration.Value{"SLUICE_TIMEOUT": &m.Timeout,
		"SLUICE_ASSUME_ROLE_DURATION": &r.Duration} {
		text := s.getenv(name)
		if text == "" || !value.IsNull() {
			continue
		}
		if _, err := duration.Parse(text); err != nil {
			diags.AddError("Not a duration", fmt.Sprintf("%s %v.", name, err))
		}
		*value = duration.Value{StringValue: types.StringValue(text)}
	}
	if ms, known := m.Timeout.Milliseconds(); known && (ms < 1 || ms > time.Hour.Milliseconds()) {
		diags.AddAttributeError(path.Root("timeout"), "The timeout is out of range", "It must be 1ms to 1h.")
	}
	if text := s.getenv("SLUICE_RETRIES"); m.Retries.IsNull() && text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 || n > maxRetries {
			diags.AddError("Not a number of retries",
				fmt.Sprintf("SLUICE_RETRIES must be 0 to %d, and is %q.", maxRetries, text))
		}
		m.Retries = types.Int64Value(n)
	}
}

// connect makes the client, and makes sure that it can sign and that somebody answers, so that a
// mistake here is one diagnostic and not one for each resource.
func (s *sluice) connect(ctx context.Context, m *settings, r *role, diags *diag.Diagnostics) *client.Client {
	cfg := client.Config{
		Endpoint: m.Endpoint.ValueString(), Region: m.Region.ValueString(), Auth: client.Auth(m.Auth.ValueString()),
		UserAgent: "terraform-provider-sluice/" + s.version, Retries: m.retries(),
	}
	if ms, known := m.Timeout.Milliseconds(); known {
		cfg.Timeout = time.Duration(ms) * time.Millisecond
	}
	c, err := client.New(cfg)
	if err != nil {
		diags.AddAttributeError(path.Root("endpoint"), "The provider's block is not valid", sentence(err))
		return nil
	}
	if cfg.Auth != client.AuthNone {
		if !m.identify(ctx, r, &cfg, diags) {
			return nil
		}
		c, err = client.New(cfg)
	}
	if err == nil {
		err = greet(ctx, c)
	}
	if err != nil {
		diags.AddAttributeError(path.Root("endpoint"), "Sluice cannot be reached",
			sentence(err)+"\n\nThe endpoint is "+cfg.Endpoint+".")
	}
	return c
}

// retries is the client's number, in which zero is its default and negative is never.
func (m *settings) retries() int {
	n := int(m.Retries.ValueInt64())
	if n == 0 && !m.Retries.IsNull() {
		return -1
	}
	return n
}

// greet makes one request that anyone may be refused: what counts is that Sluice, or the gateway
// before it, has answered.
func greet(ctx context.Context, c *client.Client) error {
	_, err := c.ListPoliciesPage(ctx, client.ListPoliciesOptions{Limit: 1})
	if e, answered := errors.AsType[*client.Error](err); answered &&
		(errors.Is(err, client.ErrForbidden) || e.Status == 429 || e.Status >= 500) {
		return nil
	}
	return err
}

// clientOf takes the client that Configure made. There is none while Terraform only validates, or
// while the block is not known.
func clientOf(data any, diags *diag.Diagnostics) *client.Client {
	if data == nil {
		return nil
	}
	c, ok := data.(*client.Client)
	if !ok {
		diags.AddError("A fault in the provider",
			fmt.Sprintf("A client was expected, not a %T: please report this.", data))
	}
	return c
}

// connected notes an error when the provider's block was not known in full.
func connected(c *client.Client, diags *diag.Diagnostics) bool {
	if c == nil {
		diags.AddError("The provider's configuration is not known yet",
			"It depends on what another resource will be. Apply that first, with -target=ADDRESS, and then the rest.")
	}
	return c != nil
}
