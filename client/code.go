package client

// Code identifies a kind of failure. Its value is the member "code" of the API's problem document
// (RFC 9457). For a failure without a problem document, this package sets one of its own codes.
type Code string

// Codes of the HTTP API.
const (
	CodeInvalidRequest       Code = "invalid_request"
	CodeNotFound             Code = "not_found"
	CodeJobNotFound          Code = "job_not_found"
	CodeQueueNotFound        Code = "queue_not_found"
	CodePolicyNotFound       Code = "policy_not_found"
	CodeMethodNotAllowed     Code = "method_not_allowed"
	CodeLockHeld             Code = "lock_held"
	CodeLockNotHeld          Code = "lock_not_held"
	CodeJobConflict          Code = "job_conflict"
	CodePreconditionFailed   Code = "precondition_failed"
	CodePayloadTooLarge      Code = "payload_too_large"
	CodeUnsupportedMediaType Code = "unsupported_media_type"
	CodeQuotaExceeded        Code = "quota_exceeded"
	CodeInternal             Code = "internal"
	CodeStoreUnavailable     Code = "store_unavailable"
	CodeDeadlineExceeded     Code = "deadline_exceeded"
)

// Codes of this package, for failures without a problem document of the API.
const (
	CodeForbidden   Code = "forbidden"   // the gateway answered 401 or 403
	CodeThrottled   Code = "throttled"   // the gateway answered 429
	CodeUnavailable Code = "unavailable" // the gateway answered 5xx
	CodeUnreachable Code = "unreachable" // no answer arrived
	CodeUnexpected  Code = "unexpected"  // the answer is not from Sluice
)
