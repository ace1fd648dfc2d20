// Package routes lists the routes of the HTTP API. Tests compare this list with the functions, the
// local gateway, the Terraform module and docs/openapi.yaml.
package routes

// Function is the name of the Lambda function that serves a route.
type Function string

// The functions that API Gateway invokes.
const (
	Lock    Function = "lock"
	Enqueue Function = "enqueue"
	Limit   Function = "limit"
)

// Route is a method, a path and the function that serves it. A path segment in braces is a
// parameter.
type Route struct {
	Method   string
	Path     string
	Function Function
}

// Key returns the route key of API Gateway, which is also the pattern of [http.ServeMux], for
// example "POST /v1/locks/{name}/acquire".
func (r Route) Key() string {
	if r.Path == Default {
		return Default
	}
	return r.Method + " " + r.Path
}

// All returns every route except the fallback routes.
func All() []Route {
	return []Route{
		{"POST", "/v1/locks/{name}/acquire", Lock},
		{"POST", "/v1/locks/{name}/renew", Lock},
		{"POST", "/v1/locks/{name}/release", Lock},
		{"GET", "/v1/locks/{name}", Lock},
		{"DELETE", "/v1/locks/{name}", Lock},
		{"POST", "/v1/semaphores/{name}/acquire", Lock},
		{"POST", "/v1/semaphores/{name}/renew", Lock},
		{"POST", "/v1/semaphores/{name}/release", Lock},
		{"GET", "/v1/semaphores/{name}", Lock},
		{"DELETE", "/v1/semaphores/{name}", Lock},

		{"POST", "/v1/queues/{queue}/jobs", Enqueue},
		{"GET", "/v1/queues/{queue}/jobs", Enqueue},
		{"POST", "/v1/queues/{queue}/jobs/batch", Enqueue},
		{"GET", "/v1/queues/{queue}/jobs/{id}", Enqueue},
		{"PATCH", "/v1/queues/{queue}/jobs/{id}", Enqueue},
		{"DELETE", "/v1/queues/{queue}/jobs/{id}", Enqueue},
		{"POST", "/v1/queues/{queue}/jobs/{id}/ack", Enqueue},
		{"POST", "/v1/queues/{queue}/jobs/{id}/nack", Enqueue},
		{"GET", "/v1/queues", Enqueue},
		{"GET", "/v1/queues/{queue}", Enqueue},
		{"POST", "/v1/queues/{queue}/pause", Enqueue},
		{"POST", "/v1/queues/{queue}/resume", Enqueue},
		{"POST", "/v1/queues/{queue}/redrive", Enqueue},

		{"POST", "/v1/limits/check", Limit},
		{"POST", "/v1/limits/{policy}/check", Limit},
		{"POST", "/v1/limits/{policy}/refund", Limit},
		{"GET", "/v1/limits/{policy}", Limit},
		{"DELETE", "/v1/limits/{policy}", Limit},
		{"GET", "/v1/policies", Limit},
		{"GET", "/v1/policies/{name}", Limit},
		{"PUT", "/v1/policies/{name}", Limit},
		{"DELETE", "/v1/policies/{name}", Limit},
		{"GET", "/v1/health", Limit},
	}
}

// Of returns the routes of one function.
func Of(f Function) []Route {
	var out []Route
	for _, r := range All() {
		if r.Function == f {
			out = append(out, r)
		}
	}
	return out
}

// Any is the method of a fallback route. It matches every method for which the path has no other
// route.
const Any = "ANY"

// Fallbacks returns greedy routes that match every request that no route of the API matches. Their
// functions answer with the problem document of a 404 or 405. Without them, API Gateway would
// answer {"message":"Not Found"}.
func Fallbacks() []Route {
	return []Route{
		{Any, "/v1/locks/{proxy+}", Lock},
		{Any, "/v1/semaphores/{proxy+}", Lock},
		{Any, "/v1/queues/{proxy+}", Enqueue},
		{Any, "/v1/queues", Enqueue},
		{Any, Default, Limit},
	}
}

// Default is the path of the route that matches every request that no other route matches.
const Default = "$default"
