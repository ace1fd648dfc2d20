# The example as it stands, on an account that does not exist.

mock_provider "aws" {}

variables {
  artifact_bucket = "artifacts"
  release         = "1.0.0"
  zip_sha256      = { lock = "bG9jaw==", enqueue = "ZW5xdWV1ZQ==", dispatcher = "ZGlzcGF0Y2hlcg==", limit = "bGltaXQ=" }
  consumer_role   = "orders-consumer"
}

run "everything_that_can_be_set_is_accepted" {
  assert {
    condition     = keys(module.sluice.queue_urls) == ["emails", "ledger", "orders"] && module.sluice.redis.cluster && module.sluice.redis.auth == "iam"
    error_message = "The queues, or the cluster, are not those of the example."
  }
  assert {
    condition     = aws_apigatewayv2_route.checkout.authorizer_id == module.sluice.authorizer_ids["shop"]
    error_message = "The shop's route must be behind the limiter."
  }
  assert {
    condition     = jsondecode(aws_iam_role_policy.caller.policy).Statement[0].Action == ["execute-api:Invoke"]
    error_message = "The consumer must be able to ack."
  }
}
