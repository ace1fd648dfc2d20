# Plans the example unchanged, without an AWS account.

mock_provider "aws" {}

override_data {
  target = module.sluice.data.aws_availability_zones.available
  values = { names = ["eu-central-1a", "eu-central-1b"] }
}

run "a_few_lines_create_a_deployment" {
  assert {
    condition     = keys(module.sluice.queue_urls) == ["orders"] && keys(module.sluice.function_names) == ["dispatcher", "enqueue", "limit", "lock"]
    error_message = "The example must create the queue and the four functions."
  }
  assert {
    condition     = output.endpoint == module.sluice.endpoints["limit"]
    error_message = "The example must output the endpoint, which callers need."
  }
}
