# The API's routes, from routes.json: method, path and function. A test holds that file equal to shared/routes, and that to docs/openapi.yaml.

locals {
  routes = { for r in jsondecode(file("${path.module}/routes.json")) : r.path == "$default" ? "$default" : "${r.method} ${r.path}" => r.function }
}
