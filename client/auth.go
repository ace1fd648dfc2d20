package client

import "net"

// Auth selects how requests are authenticated.
type Auth string

// The authentication methods.
const (
	AuthIAM  Auth = "aws_iam" // AWS Signature Version 4
	AuthNone Auth = "none"    // unsigned requests, for the local stack
)

// defaultAuth returns AuthNone if the endpoint is on this machine and the caller has set no
// credentials. Otherwise it returns AuthIAM.
func defaultAuth(host string, credentials bool) Auth {
	local := host == "localhost" || net.ParseIP(host).IsLoopback()
	if local && !credentials {
		return AuthNone
	}
	return AuthIAM
}
