package client

import "net"

// Auth selects how requests are authenticated.
type Auth string

// The ways to authenticate.
const (
	AuthIAM  Auth = "aws_iam" // AWS Signature Version 4
	AuthNone Auth = "none"    // unsigned requests, for the local stack
)

// defaultAuth returns AuthNone for an endpoint on this machine, where only a local stack can be.
// Explicit credentials are a request to sign.
func defaultAuth(host string, credentials bool) Auth {
	local := host == "localhost" || net.ParseIP(host).IsLoopback()
	if local && !credentials {
		return AuthNone
	}
	return AuthIAM
}
