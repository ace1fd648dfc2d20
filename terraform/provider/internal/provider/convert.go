package provider

import (
	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/shared/policy"
)

// toClient converts a policy to the type that the client sends.
func toClient(p policy.Policy) client.Policy {
	out := client.Policy{
		Name: p.Name, Description: p.Description, Mode: client.PolicyMode(p.Mode),
		OnUnavailable: client.OnUnavailable(p.OnUnavailable), LocalShare: p.LocalShare, NoDenyCache: p.NoDenyCache,
		Rules: toClientRules(p.Rules),
	}
	for _, o := range p.Overrides {
		out.Overrides = append(out.Overrides, client.Override{
			Key: o.Key, Mode: client.PolicyMode(o.Mode), Rules: toClientRules(o.Rules),
		})
	}
	return out
}

// toClientRules converts rules. It returns nil for nil: an override with nil rules keeps the
// policy's rules.
func toClientRules(rules []policy.Rule) []client.Rule {
	if rules == nil {
		return nil
	}
	out := make([]client.Rule, len(rules))
	for i, r := range rules {
		out[i] = client.Rule{
			Name: r.Name, Algorithm: client.Algorithm(r.Algorithm), Limit: r.Limit,
			Window: r.Window, Burst: r.Burst,
		}
	}
	return out
}
