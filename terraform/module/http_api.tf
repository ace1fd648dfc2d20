# The HTTP API, which requires SigV4 on every route.

locals {
  make_api    = var.front_door == "http_api"
  api_targets = { for name in toset(values(local.routes)) : name => local.functions[name] if local.make_api }
}

resource "aws_apigatewayv2_api" "this" {
  count = local.make_api ? 1 : 0

  name          = var.name
  description   = "Sluice: locks, delayed jobs, rate limits"
  protocol_type = "HTTP"
  tags          = local.tags
}

resource "aws_apigatewayv2_integration" "function" {
  for_each = local.api_targets

  api_id                 = aws_apigatewayv2_api.this[0].id
  integration_type       = "AWS_PROXY"
  integration_uri        = each.value.invoke_arn
  payload_format_version = "2.0"
  timeout_milliseconds   = 30000
}

resource "aws_apigatewayv2_route" "this" {
  for_each = { for key, function in local.routes : key => function if local.make_api }

  api_id             = aws_apigatewayv2_api.this[0].id
  route_key          = each.key
  target             = "integrations/${aws_apigatewayv2_integration.function[each.value].id}"
  authorization_type = "AWS_IAM"
}

resource "aws_apigatewayv2_stage" "default" {
  count = local.make_api ? 1 : 0

  api_id      = aws_apigatewayv2_api.this[0].id
  name        = "$default"
  auto_deploy = true
  tags        = local.tags

  default_route_settings {
    detailed_metrics_enabled = true
    throttling_rate_limit    = var.throttle.rate
    throttling_burst_limit   = var.throttle.burst
  }

  access_log_settings {
    destination_arn = aws_cloudwatch_log_group.api[0].arn
    format = jsonencode({
      time              = "$context.requestTime"
      request_id        = "$context.requestId"
      route             = "$context.routeKey"
      status            = "$context.status"
      caller            = "$context.identity.userArn"
      source_ip         = "$context.identity.sourceIp"
      user_agent        = "$context.identity.userAgent"
      latency_ms        = "$context.responseLatency"
      integration_ms    = "$context.integrationLatency"
      integration_error = "$context.integrationErrorMessage"
      error             = "$context.error.message"
    })
  }
}

resource "aws_cloudwatch_log_group" "api" {
  count = local.make_api ? 1 : 0

  name              = "/aws/vendedlogs/${var.name}/api"
  retention_in_days = var.log_retention_days
  kms_key_id        = local.key_arn
  tags              = local.tags
}

resource "aws_lambda_permission" "api" {
  for_each = local.api_targets

  statement_id   = "http-api"
  action         = "lambda:InvokeFunction"
  function_name  = each.value.name
  principal      = "apigateway.amazonaws.com"
  source_account = local.account
  source_arn     = "${aws_apigatewayv2_api.this[0].execution_arn}/*/*"
}
