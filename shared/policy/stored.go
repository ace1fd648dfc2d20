package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// Stored is a policy with the version that the store assigned to it.
type Stored struct {
	Policy
	// Version starts at 1 and increases with every change and deletion. A policy that is created
	// again after a deletion gets the next version.
	Version   int64
	UpdatedAt time.Time
}

// ETag returns the HTTP entity tag (RFC 9110, 8.8.3) of this version, including the quotes.
func (s Stored) ETag() string {
	text, _ := json.Marshal(s.Document()) // strings and numbers always marshal
	sum := sha256.Sum256(text)

	return fmt.Sprintf(`"%d-%s"`, s.Version, hex.EncodeToString(sum[:8]))
}
