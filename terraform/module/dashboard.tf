# The dashboard. dashboard.json.tftpl is JSON as it stands, which tools/dashboard draws for the docs. Queues are found by search expressions, so that
# it needs no change for a new one.

resource "aws_cloudwatch_dashboard" "this" {
  count = var.dashboard ? 1 : 0

  dashboard_name = var.name
  dashboard_body = templatefile("${path.module}/dashboard.json.tftpl", {
    region    = local.region
    name      = var.name
    namespace = local.metrics_namespace
    api_id    = local.make_api ? aws_apigatewayv2_api.this[0].id : "none"
  })
}
