package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/sluicehq/sluice/client"
)

// policyFile is the JSON form of a policy in a file. It declares its own types for rules and
// overrides. With [client.Rule], which has its own UnmarshalJSON, the decoder would ignore a
// misspelled field despite DisallowUnknownFields.
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

// readPolicy reads a policy from a file, or from standard input if path is "-". It refuses unknown
// fields.
func (a *app) readPolicy(name, path string) (client.Policy, error) {
	source, read := path, func() ([]byte, error) { return os.ReadFile(path) } //nolint:gosec // the user's own file
	if path == "-" {
		source, read = "standard input", a.readAll
	}
	text, err := read()
	if err != nil {
		return client.Policy{}, err
	}
	p, err := parsePolicy(text)
	if err != nil {
		return p, usageError{fmt.Errorf("%s is not a policy: %w", source, err)}
	}

	if p.Name == "" {
		p.Name = name
	}
	if p.Name != name {
		return p, usageError{fmt.Errorf("the policy in %s has the name %q, not %q", source, p.Name, name)}
	}
	return p, nil
}

func parsePolicy(text []byte) (client.Policy, error) {
	var file policyFile
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&file); err != nil {
		return client.Policy{}, err
	}
	if decoder.More() {
		return client.Policy{}, errors.New("there is text after the policy")
	}
	return file.policy(), nil
}

// policy converts the file to the type of the client.
func (f policyFile) policy() client.Policy {
	p := f.Policy
	p.Rules = toRules(f.Rules)
	for _, o := range f.Overrides {
		p.Overrides = append(p.Overrides, client.Override{Key: o.Key, Mode: o.Mode, Rules: toRules(o.Rules)})
	}
	return p
}

// toRules converts rules. It returns nil for nil: an override without rules uses the rules of the
// policy.
func toRules(files []ruleFile) []client.Rule {
	if files == nil {
		return nil
	}
	rules := make([]client.Rule, len(files))
	for i, r := range files {
		window := time.Duration(r.WindowMS) * time.Millisecond
		rules[i] = client.Rule{Name: r.Name, Algorithm: r.Algorithm, Limit: r.Limit, Window: window, Burst: r.Burst}
	}
	return rules
}
