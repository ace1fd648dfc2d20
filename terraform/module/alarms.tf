# Alarms, each with a runbook in docs/operations.md. CloudWatch reads the metrics in the
# deployment's namespace from the functions' logs (embedded metric format). A test compares the
# metrics' names and dimensions with the Go code.

locals {
  dispatcher = { function = "dispatcher" }
  runbooks   = "Runbook: docs/operations.md#"

  # The attribute "missing" sets CloudWatch's treat_missing_data. A period without a heartbeat
  # counts as a period of failure. A period without an error count does not.
  metric_alarms = { for name, alarm in merge(
    {
      "dispatcher-heartbeat" = {
        description = "No dispatcher has run for two minutes, so no jobs are sent."
        runbook     = "dispatcher-heartbeat"
        namespace   = local.metrics_namespace, metric = "heartbeat", dimensions = local.dispatcher, stat = "Sum"
        below       = true, threshold = 1, period = 60, periods = 2, points = 2, missing = "breaching"
      }
      "dispatcher-undelivered" = {
        description = "EventBridge or Lambda could not run the dispatcher and moved the invocation to its dead-letter queue."
        runbook     = "dispatcher-undelivered"
        namespace   = "AWS/SQS", metric = "ApproximateNumberOfMessagesVisible", dimensions = { QueueName = aws_sqs_queue.dispatcher_dead.name }, stat = "Maximum"
        below       = false, threshold = 1, period = 300, periods = 1, points = 1, missing = "notBreaching"
      }
      "limits-degraded" = {
        description = "Redis is unavailable, so each policy's on_unavailable setting decides its checks."
        runbook     = "degraded"
        namespace   = local.metrics_namespace, metric = "degraded", dimensions = { function = "limit" }, stat = "Sum"
        below       = false, threshold = 1, period = 60, periods = 3, points = 2, missing = "notBreaching"
      }
    },
    { for name in keys(var.queues) : "lateness-${name}" => {
      description = "The dispatcher sends jobs of the queue ${name} to SQS late."
      runbook     = "lateness"
      namespace   = local.metrics_namespace, metric = "lateness", dimensions = merge(local.dispatcher, { queue = name }), stat = "p99"
      below       = false, threshold = var.alarms.lateness_p99_ms, period = 60, periods = 5, points = 3, missing = "notBreaching"
    } },
    { for name in keys(var.queues) : "oldest-due-${name}" => {
      description = "A job of the queue ${name} is overdue: the dispatcher is too slow, or SQS rejects the job."
      runbook     = "oldest-due"
      namespace   = local.metrics_namespace, metric = "oldest_due", dimensions = merge(local.dispatcher, { queue = name }), stat = "Maximum"
      below       = false, threshold = var.alarms.oldest_due_ms, period = 60, periods = 3, points = 3, missing = "notBreaching"
    } },
    { for name in keys(var.queues) : "dead-jobs-${name}" => {
      description = "Jobs of the queue ${name} are dead: their attempts are exhausted. A redrive enqueues dead jobs again."
      runbook     = "dead-jobs"
      namespace   = local.metrics_namespace, metric = "dead", dimensions = merge(local.dispatcher, { queue = name }), stat = "Maximum"
      below       = false, threshold = 1, period = 300, periods = 1, points = 1, missing = "notBreaching"
    } },
    { for name in keys(var.queues) : "outbox-${name}" => {
      description = "Jobs of the queue ${name} stay in the outbox, because the dispatcher does not drain it."
      runbook     = "outbox"
      namespace   = local.metrics_namespace, metric = "outbox", dimensions = merge(local.dispatcher, { queue = name }), stat = "Minimum"
      below       = false, threshold = 1, period = 60, periods = var.alarms.outbox_minutes, points = var.alarms.outbox_minutes, missing = "notBreaching"
    } },
    { for name in keys(var.queues) : "degraded-${name}" => {
      description = "Redis is unavailable, so jobs of the queue ${name} are stored in the outbox in DynamoDB."
      runbook     = "degraded"
      namespace   = local.metrics_namespace, metric = "degraded", dimensions = { function = "enqueue", queue = name }, stat = "Sum"
      below       = false, threshold = 1, period = 60, periods = 3, points = 2, missing = "notBreaching"
    } },
    { for name in keys(var.queues) : "dead-letters-${name}" => {
      description = "Consumers of the queue ${name} failed to process a message max_receive_count times; SQS moved the message to the dead-letter queue."
      runbook     = "dead-letters"
      namespace   = "AWS/SQS", metric = "ApproximateNumberOfMessagesVisible", dimensions = { QueueName = aws_sqs_queue.dead[name].name }, stat = "Maximum"
      below       = false, threshold = 1, period = 300, periods = 1, points = 1, missing = "notBreaching"
    } },
    { for name, f in local.functions : "throttles-${name}" => {
      description = "Lambda throttles the function ${name}, because the function's or the account's concurrency is exhausted."
      runbook     = "throttles"
      namespace   = "AWS/Lambda", metric = "Throttles", dimensions = { FunctionName = f.name }, stat = "Sum"
      below       = false, threshold = 1, period = 60, periods = 3, points = 2, missing = "notBreaching"
    } },
    { for name, f in local.functions : "errors-${name}" => {
      description = "Invocations of the function ${name} fail: the function crashes or times out."
      runbook     = "errors"
      namespace   = "AWS/Lambda", metric = "Errors", dimensions = { FunctionName = f.name }, stat = "Sum"
      below       = false, threshold = 1, period = 300, periods = 1, points = 1, missing = "notBreaching"
    } },
    { for name in ["api-5xx"] : name => {
      description = "The API returns 5xx: a store is unavailable, or a function fails."
      runbook     = "api-5xx"
      namespace   = "AWS/ApiGateway", metric = "5xx", dimensions = { ApiId = aws_apigatewayv2_api.this[0].id }, stat = "Sum"
      below       = false, threshold = 5, period = 60, periods = 3, points = 2, missing = "notBreaching"
    } if local.make_api },
    { for name, f in local.url_functions : "url-5xx-${name}" => {
      description = "The function URL of ${name} returns 5xx: a store is unavailable, or the function fails."
      runbook     = "api-5xx"
      namespace   = "AWS/Lambda", metric = "Url5xxCount", dimensions = { FunctionName = f.name }, stat = "Sum"
      below       = false, threshold = 5, period = 60, periods = 3, points = 2, missing = "notBreaching"
    } },
  ) : name => alarm if var.alarms.enabled }

  # Alarms on a CloudWatch metric expression.
  computed_alarms = { for name, alarm in {
    "redis-memory" = {
      description = "Redis is nearly full. A full Redis rejects writes: locks return 503, and jobs go to the outbox."
      runbook     = "redis-memory"
      expression  = "100 * used / most", label = "memory used (%)", threshold = var.alarms.memory_percent, period = 60, periods = 5, points = 5
      metrics     = { used = "used_memory", most = "maxmemory" }
    }
    "redis-evictions" = {
      description = "Redis evicted keys, so locks or jobs may be lost. maxmemory-policy must be noeviction."
      runbook     = "redis-evictions"
      expression  = "DIFF(evicted)", label = "keys evicted", threshold = 1, period = 60, periods = 1, points = 1
      metrics     = { evicted = "evicted_keys" }
    }
  } : name => alarm if var.alarms.enabled }
}

resource "aws_cloudwatch_metric_alarm" "metric" {
  for_each = local.metric_alarms

  alarm_name          = "${var.name}-${each.key}"
  alarm_description   = "${each.value.description} ${local.runbooks}${each.value.runbook}"
  namespace           = each.value.namespace
  metric_name         = each.value.metric
  dimensions          = each.value.dimensions
  statistic           = startswith(each.value.stat, "p") ? null : each.value.stat
  extended_statistic  = startswith(each.value.stat, "p") ? each.value.stat : null
  comparison_operator = each.value.below ? "LessThanThreshold" : "GreaterThanOrEqualToThreshold"
  threshold           = each.value.threshold
  period              = each.value.period
  evaluation_periods  = each.value.periods
  datapoints_to_alarm = each.value.points
  treat_missing_data  = each.value.missing
  alarm_actions       = var.alarms.actions
  ok_actions          = var.alarms.actions
  tags                = local.tags
}

resource "aws_cloudwatch_metric_alarm" "computed" {
  for_each = local.computed_alarms

  alarm_name          = "${var.name}-${each.key}"
  alarm_description   = "${each.value.description} ${local.runbooks}${each.value.runbook}"
  comparison_operator = "GreaterThanOrEqualToThreshold"
  threshold           = each.value.threshold
  evaluation_periods  = each.value.periods
  datapoints_to_alarm = each.value.points
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarms.actions
  ok_actions          = var.alarms.actions
  tags                = local.tags

  metric_query {
    id          = "result"
    expression  = each.value.expression
    label       = each.value.label
    return_data = true
  }

  dynamic "metric_query" {
    for_each = each.value.metrics
    content {
      id = metric_query.key
      metric {
        namespace   = local.metrics_namespace
        metric_name = metric_query.value
        dimensions  = local.dispatcher
        period      = each.value.period
        stat        = "Maximum"
      }
    }
  }
}
