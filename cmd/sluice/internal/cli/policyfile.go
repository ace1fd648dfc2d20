package cli

import "github.com/sluicehq/sluice/client"

// policyFile is a policy as it is written in a file. Decoding it with DisallowUnknownFields refuses
// misspelled fields, also those of the rules, which [client.Rule] ignores.
type policyFile struct {
	client.Policy

	Rules     []ruleFile     `json:"rules"`
	Overrides []overrideFile `json:"overrides"`
}

type ruleFile struct {
	Name      string           `json:"name"`
	Algorithm client.Algorithm `json:"algorithm"`
	Limit     int64            `json:"limit"`
	WindowMS  int64            `json:"window_ms"`
	Burst     int64            `json:"burst"`
}

type overrideFile struct {
	Key   string            `json:"key"`
	Mode  client.PolicyMode `json:"mode"`
	Rules []ruleFile        `json:"rules"`
}

// policy converts the file to the type that the client sends.
func (f policyFile) policy() client.Policy {
	p := f.Policy
	p.Rules = toRules(f.Rules)

	for _, o := range f.Overrides {
		p.Overrides = append(p.Overrides, client.Override{Key: o.Key, Mode: o.Mode, Rules: toRules(o.Rules)})
	}
	return p
}

// toRules keeps nil, which means the policy's rules in an override.
func toRules(files []ruleFile) []client.Rule {
	if files == nil {
		return nil
	}
	rules := make([]client.Rule, len(files))
	for i, r := range files {
		rules[i] = client.Rule{
			Name: r.Name, Algorithm: r.Algorithm, Limit: r.Limit, Window: milliseconds(r.WindowMS), Burst: r.Burst,
		}
	}
	return rules
}
