# Plans the example unchanged, without an AWS account.

mock_provider "aws" {}

mock_provider "sluice" {}

override_data {
  target = module.sluice.data.aws_availability_zones.available
  values = { names = ["eu-central-1a", "eu-central-1b"] }
}

run "creates_the_deployment_and_its_limits" {
  assert {
    condition     = sluice_limiter_policy.login.rules[0].limit == 5 && sluice_limiter_policy.shop_per_key.name == "shop-per-key"
    error_message = "The deployment must have the example's limits."
  }
  assert {
    condition     = output.authorizer_id == module.sluice.authorizer_ids["shop"]
    error_message = "The example must output the ID of the authorizer for the shop's routes."
  }
}
