# The HTTP API, the function URLs, and the authorizer of other APIs.

mock_provider "aws" {}

override_data {
  target = data.aws_caller_identity.current
  values = { account_id = "111122223333" }
}

override_data {
  target = data.aws_partition.current
  values = { partition = "aws" }
}

override_data {
  target = data.aws_region.current
  values = { region = "eu-central-1" }
}

override_data {
  target = data.aws_availability_zones.available
  values = { names = ["eu-central-1a", "eu-central-1b"] }
}

override_resource {
  target = aws_apigatewayv2_api.this
  values = { id = "abc123", api_endpoint = "https://abc123.execute-api.eu-central-1.amazonaws.com", execution_arn = "arn:aws:execute-api:eu-central-1:111122223333:abc123" }
}

override_resource {
  target = aws_apigatewayv2_authorizer.this
  values = { id = "auth1" }
}

override_resource {
  target = module.limit.aws_lambda_function.this
  values = {
    arn        = "arn:aws:lambda:eu-central-1:111122223333:function:sluice-limit"
    invoke_arn = "arn:aws:apigateway:eu-central-1:lambda:path/2015-03-31/functions/sluice-limit/invocations"
  }
}

override_resource {
  target = aws_lambda_function_url.this
  values = { function_url = "https://xyz.lambda-url.eu-central-1.on.aws/" }
}

override_resource {
  target = aws_cloudwatch_log_group.api
  values = { arn = "arn:aws:logs:eu-central-1:111122223333:log-group:/aws/vendedlogs/sluice/api" }
}

variables {
  packages = { directory = "tests/packages" }
}

run "every_route_requires_sigv4" {
  assert {
    condition     = length(aws_apigatewayv2_route.this) == length(jsondecode(file("routes.json"))) && alltrue([for r in aws_apigatewayv2_route.this : r.authorization_type == "AWS_IAM"])
    error_message = "Each route of routes.json must exist and require SigV4."
  }
  assert {
    condition     = contains(keys(aws_apigatewayv2_route.this), "POST /v1/locks/{name}/acquire") && contains(keys(aws_apigatewayv2_route.this), "$default")
    error_message = "A route key must have a form that API Gateway accepts."
  }
  assert {
    condition     = { for name, i in aws_apigatewayv2_integration.function : name => [i.integration_type, i.payload_format_version] } == { for name in ["lock", "enqueue", "limit"] : name => ["AWS_PROXY", "2.0"] }
    error_message = "Each function except the dispatcher needs an integration with payload 2.0."
  }
  assert {
    condition     = aws_apigatewayv2_integration.function["limit"].integration_uri == "arn:aws:apigateway:eu-central-1:lambda:path/2015-03-31/functions/sluice-limit/invocations"
    error_message = "The integration must invoke the function."
  }
  assert {
    condition = alltrue([for name, p in aws_lambda_permission.api :
      p.principal == "apigateway.amazonaws.com" && p.source_arn == "arn:aws:execute-api:eu-central-1:111122223333:abc123/*/*" && p.source_account == "111122223333" && p.function_name == "sluice-${name}"
    ]) && length(aws_lambda_permission.api) == 3
    error_message = "Only this API may invoke the functions."
  }
}

run "the_stage_throttles_and_logs_accesses" {
  variables {
    throttle = { rate = 50 }
  }
  assert {
    condition     = aws_apigatewayv2_stage.default[0].default_route_settings[0].throttling_rate_limit == 50 && aws_apigatewayv2_stage.default[0].default_route_settings[0].throttling_burst_limit == 2000
    error_message = "The stage must throttle at the rate in var.throttle, with the default burst."
  }
  assert {
    condition     = aws_apigatewayv2_stage.default[0].access_log_settings[0].destination_arn == "arn:aws:logs:eu-central-1:111122223333:log-group:/aws/vendedlogs/sluice/api"
    error_message = "The stage must log accesses."
  }
  assert {
    condition     = alltrue([for field in ["request_id", "route", "status", "caller", "latency_ms"] : contains(keys(jsondecode(aws_apigatewayv2_stage.default[0].access_log_settings[0].format)), field)])
    error_message = "An access log line must contain the caller, the route and the status."
  }
  assert {
    condition     = aws_cloudwatch_log_group.api[0].retention_in_days == 30 && startswith(aws_cloudwatch_log_group.api[0].name, "/aws/vendedlogs/")
    error_message = "The access log must have a retention."
  }
  assert {
    condition     = output.endpoint == "https://abc123.execute-api.eu-central-1.amazonaws.com" && length(aws_lambda_function_url.this) == 0
    error_message = "The output endpoint must be the URL of the API."
  }
}

run "function_urls_require_sigv4_and_replace_the_api" {
  variables {
    front_door = "function_url"
  }
  assert {
    condition     = { for name, u in aws_lambda_function_url.this : name => [u.authorization_type, u.function_name] } == { for name in ["lock", "enqueue", "limit"] : name => ["AWS_IAM", "sluice-${name}"] }
    error_message = "Each function except the dispatcher needs a URL that requires SigV4."
  }
  assert {
    condition     = length(aws_apigatewayv2_api.this) == 0 && length(aws_apigatewayv2_route.this) == 0 && length(aws_lambda_permission.api) == 0
    error_message = "There must be no HTTP API next to the URLs."
  }
  assert {
    condition     = output.endpoint == null && output.endpoints["lock"] == "https://xyz.lambda-url.eu-central-1.on.aws"
    error_message = "The output endpoints must be the URLs, without a trailing slash."
  }
  assert {
    condition     = contains(keys(output.alarm_arns), "url-5xx-lock") && !contains(keys(output.alarm_arns), "api-5xx")
    error_message = "The alarms on 5xx must watch the function URLs."
  }
}

run "other_apis_are_limited_by_the_authorizer" {
  variables {
    authorizer = { apis = { shop = "shop123" }, policy = "per-caller", key = "$request.header.x-api-key" }
  }
  assert {
    condition     = aws_apigatewayv2_authorizer.this["shop"].api_id == "shop123" && aws_apigatewayv2_authorizer.this["shop"].authorizer_type == "REQUEST" && aws_apigatewayv2_authorizer.this["shop"].enable_simple_responses == true && aws_apigatewayv2_authorizer.this["shop"].authorizer_payload_format_version == "2.0"
    error_message = "The authorizer must send payload 2.0 and accept simple responses."
  }
  assert {
    condition     = aws_apigatewayv2_authorizer.this["shop"].authorizer_result_ttl_in_seconds == 0
    error_message = "API Gateway must not cache decisions, because a decision applies to one request."
  }
  assert {
    condition     = aws_lambda_permission.authorizer["shop"].source_arn == "arn:aws:execute-api:eu-central-1:111122223333:shop123/authorizers/auth1"
    error_message = "Only the authorizer of the shop's API may invoke the function."
  }
  assert {
    condition     = module.limit.wiring.function.environment[0].variables["SLUICE_AUTHORIZER_POLICY"] == "per-caller" && module.limit.wiring.function.environment[0].variables["SLUICE_AUTHORIZER_KEY"] == "$request.header.x-api-key"
    error_message = "The environment of the function must contain the policy and the key."
  }
  assert {
    condition     = output.authorizer_ids == { shop = "auth1" }
    error_message = "The output authorizer_ids must contain the ID of the authorizer."
  }
}
