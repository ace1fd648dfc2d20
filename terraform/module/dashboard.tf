# The CloudWatch dashboard. The template dashboard.json.tftpl is itself valid JSON, because
# tools/dashboard reads it to draw the picture in the documentation. Search expressions find the
# queues, so a new queue needs no change here.

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
