# Plans the example unchanged, without an AWS account.

mock_provider "aws" {}

variables {
  artifact_bucket = "artifacts"
  release         = "1.0.0"
  zip_sha256      = { lock = "bG9jaw==", enqueue = "ZW5xdWV1ZQ==", dispatcher = "ZGlzcGF0Y2hlcg==", limit = "bGltaXQ=" }
  consumer_role   = "orders-consumer"
}

run "accepts_every_setting" {
  assert {
    condition     = keys(module.sluice.queue_urls) == ["emails", "ledger", "orders"] && module.sluice.redis.cluster && module.sluice.redis.auth == "iam"
    error_message = "The deployment must have the example's queues and use its cluster."
  }
  assert {
    condition     = aws_apigatewayv2_route.checkout.authorizer_id == module.sluice.authorizer_ids["shop"]
    error_message = "The route of the shop must use the authorizer."
  }
  assert {
    condition     = jsondecode(aws_iam_role_policy.caller.policy).Statement[0].Action == ["execute-api:Invoke"]
    error_message = "The consumer must be permitted to acknowledge jobs."
  }
}
