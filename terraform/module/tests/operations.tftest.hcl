# Alarms and the dashboard.

mock_provider "aws" {}

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
  values = { id = "abc123" }
}

variables {
  packages = { directory = "tests/packages" }
  queues   = { orders = {}, limits = {} }
  alarms   = { actions = ["arn:aws:sns:eu-central-1:111122223333:oncall"], lateness_p99_ms = 250 }
}

run "two_minutes_without_a_heartbeat_are_an_alarm" {
  assert {
    condition = [
      for a in [aws_cloudwatch_metric_alarm.metric["dispatcher-heartbeat"]] :
      [a.namespace, a.metric_name, a.dimensions["function"], a.statistic, a.comparison_operator, a.threshold, a.period, a.evaluation_periods, a.treat_missing_data]
    ] == [["Sluice/sluice", "heartbeat", "dispatcher", "Sum", "LessThanThreshold", 1, 60, 2, "breaching"]]
    error_message = "Two minutes with 0 heartbeats, or without data, must be an alarm."
  }
}

run "each_queue_has_its_own_alarms" {
  assert {
    condition = alltrue([for pair in setproduct(["lateness", "oldest-due", "dead-jobs", "outbox", "degraded", "dead-letters"], ["orders", "limits"]) :
      contains(keys(aws_cloudwatch_metric_alarm.metric), "${pair[0]}-${pair[1]}")
    ]) && contains(keys(aws_cloudwatch_metric_alarm.metric), "limits-degraded")
    error_message = "A queue lacks an alarm: ${jsonencode(keys(aws_cloudwatch_metric_alarm.metric))}"
  }
  assert {
    condition     = aws_cloudwatch_metric_alarm.metric["lateness-orders"].extended_statistic == "p99" && aws_cloudwatch_metric_alarm.metric["lateness-orders"].statistic == null && aws_cloudwatch_metric_alarm.metric["lateness-orders"].threshold == 250
    error_message = "The alarm on lateness must compare the 99th percentile with the threshold."
  }
  assert {
    condition     = aws_cloudwatch_metric_alarm.metric["lateness-orders"].dimensions == tomap({ function = "dispatcher", queue = "orders" }) && aws_cloudwatch_metric_alarm.metric["degraded-orders"].dimensions == tomap({ function = "enqueue", queue = "orders" })
    error_message = "The dimensions must equal the dimensions in the code; otherwise CloudWatch finds no metric."
  }
  assert {
    condition     = aws_cloudwatch_metric_alarm.metric["outbox-orders"].evaluation_periods == 10 && aws_cloudwatch_metric_alarm.metric["outbox-orders"].statistic == "Minimum"
    error_message = "The alarm on the outbox must start if the outbox contains jobs for ten minutes."
  }
}

run "throttles_errors_and_5xx_are_watched" {
  assert {
    condition     = alltrue([for name in ["lock", "enqueue", "dispatcher", "limit"] : aws_cloudwatch_metric_alarm.metric["throttles-${name}"].dimensions["FunctionName"] == "sluice-${name}" && aws_cloudwatch_metric_alarm.metric["errors-${name}"].metric_name == "Errors"])
    error_message = "Each function must have alarms on throttles and errors."
  }
  assert {
    condition     = aws_cloudwatch_metric_alarm.metric["api-5xx"].dimensions == tomap({ ApiId = "abc123" })
    error_message = "The API must have an alarm on 5xx."
  }
}

run "redis_memory_and_evictions_are_watched" {
  assert {
    condition     = aws_cloudwatch_metric_alarm.computed["redis-memory"].threshold == 75 && { for q in aws_cloudwatch_metric_alarm.computed["redis-memory"].metric_query : q.id => q.return_data == true ? q.expression : q.metric[0].metric_name } == { result = "100 * used / most", used = "used_memory", most = "maxmemory" }
    error_message = "The alarm on memory must compare the percentage of maxmemory with the threshold."
  }
  assert {
    condition     = { for q in aws_cloudwatch_metric_alarm.computed["redis-evictions"].metric_query : q.id => q.return_data == true ? q.expression : q.metric[0].metric_name } == { result = "DIFF(evicted)", evicted = "evicted_keys" }
    error_message = "The alarm on evictions must use the growth of evicted_keys, because the counter never falls."
  }
}

run "every_alarm_has_actions_and_a_runbook" {
  assert {
    condition = alltrue([for a in concat(values(aws_cloudwatch_metric_alarm.metric), values(aws_cloudwatch_metric_alarm.computed)) :
      contains(a.alarm_actions, "arn:aws:sns:eu-central-1:111122223333:oncall") && contains(a.ok_actions, "arn:aws:sns:eu-central-1:111122223333:oncall") && can(regex("Runbook: docs/operations\\.md#[a-z0-9-]+$", a.alarm_description))
    ])
    error_message = "Each alarm must have the actions and name its runbook."
  }
}

run "the_dashboard_is_for_this_deployment" {
  assert {
    condition     = alltrue([for w in jsondecode(aws_cloudwatch_dashboard.this[0].dashboard_body).widgets : w.type == "text" ? true : w.properties.region == "eu-central-1"])
    error_message = "Every widget must show this region."
  }
  assert {
    condition     = strcontains(aws_cloudwatch_dashboard.this[0].dashboard_body, "\"abc123\"") && strcontains(aws_cloudwatch_dashboard.this[0].dashboard_body, "\"sluice-dispatcher\"") && strcontains(aws_cloudwatch_dashboard.this[0].dashboard_body, "$${PROP('Dim.queue')}")
    error_message = "The dashboard must show this API and these functions, and keep CloudWatch's own variables."
  }
}

run "alarms_and_dashboard_are_optional" {
  variables {
    alarms    = { enabled = false }
    dashboard = false
  }
  assert {
    condition     = length(aws_cloudwatch_metric_alarm.metric) + length(aws_cloudwatch_metric_alarm.computed) + length(aws_cloudwatch_dashboard.this) == 0
    error_message = "There must be neither alarms nor a dashboard."
  }
}

run "two_deployments_have_separate_metrics" {
  variables {
    name = "second"
  }
  assert {
    condition     = toset([for a in aws_cloudwatch_metric_alarm.metric : a.namespace if !startswith(a.namespace, "AWS/")]) == toset(["Sluice/second"]) && module.dispatcher.wiring.function.environment[0].variables["SLUICE_METRICS_NAMESPACE"] == "Sluice/second"
    error_message = "Alarms must watch the namespace that the functions of this deployment write to."
  }
  assert {
    condition     = strcontains(aws_cloudwatch_dashboard.this[0].dashboard_body, "{\\\"Sluice/second\\\",function,queue}")
    error_message = "The dashboard must search in the deployment's namespace."
  }
}
