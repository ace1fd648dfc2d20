# The routes of the API: method, path and function. Tests compare routes.json with shared/routes,
# and shared/routes with docs/openapi.yaml.

locals {
  routes = { for r in jsondecode(file("${path.module}/routes.json")) : r.path == "$default" ? "$default" : "${r.method} ${r.path}" => r.function }
}
