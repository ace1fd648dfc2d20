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

// Configure implements provider.Provider. If the provider block depends on values that exist only
// after apply, Configure creates no client and reports no error: a resource that needs the client
// during the plan reports the error.
func (s *sluice) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var block settings
	resp.Diagnostics.Append(req.Config.Get(ctx, &block)...)
	if resp.Diagnostics.HasError() || block.unknown() {
		return
	}
	r := role{}
	if !block.AssumeRole.IsNull() {
		resp.Diagnostics.Append(block.AssumeRole.As(ctx, &r, basetypes.ObjectAsOptions{})...)
	}
	s.fillIn(&block, &r, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	c := s.connect(ctx, &block, &r, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.ResourceData, resp.DataSourceData, resp.ListResourceData, resp.ActionData = c, c, c, c
}

// fillIn takes arguments that are missing in the block from environment variables, and adds an
// error for each invalid combination.
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
	// Static credentials must come from one source: an access key from the block must never be used
	// with a secret from the environment.
	if m.AccessKey.IsNull() && m.Profile.IsNull() {
		m.AccessKey, m.SecretKey = types.StringValue(s.getenv("SLUICE_ACCESS_KEY")),
			types.StringValue(s.getenv("SLUICE_SECRET_KEY"))
		m.SessionToken = types.StringValue(s.getenv("SLUICE_SESSION_TOKEN"))
	}
	s.fillInNumbers(m, r, diags)
	if m.Endpoint.ValueString() == "" {
		diags.AddAttributeError(path.Root("endpoint"), "The endpoint is missing",
			"Set endpoint in the provider block, or SLUICE_ENDPOINT, to the URL of the API. "+
				"Sluice's module outputs this URL as endpoint.")
	}
	if (m.AccessKey.ValueString() == "") != (m.SecretKey.ValueString() == "") {
		diags.AddAttributeError(path.Root("access_key"), "The credentials are incomplete",
			"Static credentials need both access_key and secret_key.")
	}
	if !r.present() && !m.AssumeRole.IsNull() {
		diags.AddAttributeError(path.Root("assume_role").AtName("role_arn"), "The role is missing",
			"assume_role requires role_arn, in the block or in SLUICE_ASSUME_ROLE_ARN.")
	}
}

// fillInNumbers takes missing durations and the missing number of retries from environment
// variables, and adds an error for each invalid value.
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
	if timeout, ok := m.Timeout.Duration(); ok && (timeout < time.Millisecond || timeout > time.Hour) {
		diags.AddAttributeError(path.Root("timeout"), "The timeout is out of range", "It must be 1ms to 1h.")
	}
	if text := s.getenv("SLUICE_RETRIES"); m.Retries.IsNull() && text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 || n > maxRetries {
			diags.AddError("The number of retries is out of range",
				fmt.Sprintf("SLUICE_RETRIES must be 0 to %d, but is %q.", maxRetries, text))
		}
		m.Retries = types.Int64Value(n)
	}
}

// connect creates the client, and checks that credentials exist and that the endpoint responds.
// Without these checks, each resource would report a mistake in the block again.
func (s *sluice) connect(ctx context.Context, m *settings, r *role, diags *diag.Diagnostics) *client.Client {
	cfg := client.Config{
		Endpoint: m.Endpoint.ValueString(), Region: m.Region.ValueString(), Auth: client.Auth(m.Auth.ValueString()),
		UserAgent: "terraform-provider-sluice/" + s.version, Retries: m.retries(),
	}
	if timeout, ok := m.Timeout.Duration(); ok {
		cfg.Timeout = timeout
	}
	c, err := client.New(cfg)
	if err != nil {
		diags.AddAttributeError(path.Root("endpoint"), "The provider block is not valid", sentence(err))
		return nil
	}
	if cfg.Auth != client.AuthNone {
		if !m.findCredentials(ctx, r, &cfg, diags) {
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

// retries converts the argument "retries" of the provider block to the client's setting. In the
// client's setting, 0 selects the default number of retries, and -1 disables retries.
func (m *settings) retries() int {
	n := int(m.Retries.ValueInt64())
	if n == 0 && !m.Retries.IsNull() {
		return -1
	}
	return n
}

// greet lists one policy to check that the endpoint is Sluice. It ignores [client.ErrForbidden],
// because the caller can have other permissions than the permission to list policies. It ignores
// the statuses 429 and 5xx, because a later request can succeed.
func greet(ctx context.Context, c *client.Client) error {
	_, err := c.ListPoliciesPage(ctx, client.ListPoliciesOptions{Limit: 1})
	if e, answered := errors.AsType[*client.Error](err); answered &&
		(errors.Is(err, client.ErrForbidden) || e.Status == 429 || e.Status >= 500) {
		return nil
	}
	return err
}

// clientOf returns the client that Configure created. It returns nil if Terraform only validates
// the configuration, or if the provider block depends on unknown values.
func clientOf(data any, diags *diag.Diagnostics) *client.Client {
	if data == nil {
		return nil
	}
	c, ok := data.(*client.Client)
	if !ok {
		diags.AddError("Internal error of the provider",
			fmt.Sprintf("The provider received a %T instead of a client. Please report this.", data))
	}
	return c
}

// connected reports whether Configure created a client. If it did not, c is nil and connected adds
// an error.
func connected(c *client.Client, diags *diag.Diagnostics) bool {
	if c == nil {
		diags.AddError("The provider's configuration is not known yet",
			"It depends on a resource that does not exist yet. "+
				"Apply that resource first with -target=ADDRESS, then apply the rest.")
	}
	return c != nil
}
