# The caller creates resources in the same apply. Their IDs and ARNs are unknown during the plan.

mock_provider "aws" {}

run "plans_with_a_network_a_cache_a_key_and_an_api_that_do_not_exist_yet" {
  command = plan

  module {
    source = "./tests/unknowns"
  }

  assert {
    condition     = keys(module.sluice.authorizer_ids) == ["shop"]
    error_message = "The plan must contain the authorizer of an API that is created in the same apply."
  }
}
