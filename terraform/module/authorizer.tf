# The function limit as the REQUEST authorizer of other HTTP APIs.

locals {
  # No try() here: an API's id is often known only after apply, and try() would then hide even the names from for_each.
  authorized_apis = var.authorizer == null ? {} : var.authorizer.apis
}

resource "aws_apigatewayv2_authorizer" "this" {
  for_each = local.authorized_apis

  api_id                            = each.value
  name                              = var.name
  authorizer_type                   = "REQUEST"
  authorizer_uri                    = module.limit.invoke_arn
  authorizer_payload_format_version = "2.0"
  enable_simple_responses           = true
  # A decision is for one request: a cached one would count a thousand requests as one.
  authorizer_result_ttl_in_seconds = 0
}

resource "aws_lambda_permission" "authorizer" {
  for_each = local.authorized_apis

  statement_id   = "authorizer-${each.key}"
  action         = "lambda:InvokeFunction"
  function_name  = module.limit.name
  principal      = "apigateway.amazonaws.com"
  source_account = local.account
  source_arn     = "arn:${local.partition}:execute-api:${local.region}:${local.account}:${each.value}/authorizers/${aws_apigatewayv2_authorizer.this[each.key].id}"
}
