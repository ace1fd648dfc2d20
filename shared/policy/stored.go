package policy

// Stored is a policy as the store holds it.
type Stored struct {
	Policy
	// Version starts at 1 and rises with every change, a deletion included: a policy that is made
	// anew goes on where the old one ended.
	Version int64 `json:"version"`
	// UpdatedAt is an RFC 3339 instant.
	UpdatedAt string `json:"updated_at"`
}
