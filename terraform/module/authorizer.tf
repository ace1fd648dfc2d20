# Registers the function "limit" as a REQUEST authorizer of the HTTP APIs in var.authorizer.

locals {
  # Do not use try() here. An API's ID is often unknown during the plan. try() would make the map's
  # keys unknown too, and for_each rejects unknown keys.
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
  # Disables caching. Otherwise, API Gateway would reuse a decision for many requests, and Sluice
  # would charge only one of them.
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
