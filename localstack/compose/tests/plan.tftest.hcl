# Checks the plan of `make localstack-deploy`.

mock_provider "aws" {}

run "only_what_the_hobby_plan_has_is_made" {
  assert {
    condition     = keys(module.sluice.endpoints) == ["enqueue", "limit", "lock"] && module.sluice.api_id == null
    error_message = "The front door must be function URLs: the Hobby plan does not include API Gateway v2."
  }
  assert {
    condition     = module.sluice.redis == { url = "redis://valkey:6379", cluster = false, auth = "none" } && module.sluice.vpc_id == null
    error_message = "Redis must be the Valkey container."
  }
  assert {
    condition     = length(module.sluice.alarm_arns) == 0 && module.sluice.dashboard_name == null
    error_message = "Alarms and the dashboard must be disabled."
  }
}
