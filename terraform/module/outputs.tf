output "endpoint" {
  description = "The URL of the API, for the client, the command line and the provider sluicehq/sluice. Null with function URLs; use endpoints."
  value       = local.make_api ? aws_apigatewayv2_api.this[0].api_endpoint : null
}

output "endpoints" {
  description = "The URL of each function (lock, enqueue, limit). With an HTTP API, all are the same."
  value = local.make_api ? { for name in toset(values(local.routes)) : name => aws_apigatewayv2_api.this[0].api_endpoint } : {
    for name, u in aws_lambda_function_url.this : name => trimsuffix(u.function_url, "/")
  }
}

output "caller_policy" {
  description = "An IAM policy document that grants the whole API. Attach it to the roles of your services, or reduce it to the routes that they need."
  value = jsonencode({
    Version = "2012-10-17"
    Statement = local.make_api ? [
      { Sid = "CallSluice", Effect = "Allow", Action = ["execute-api:Invoke"], Resource = ["${aws_apigatewayv2_api.this[0].execution_arn}/*/*"] },
      ] : [
      { Sid = "CallSluice", Effect = "Allow", Action = ["lambda:InvokeFunctionUrl", "lambda:InvokeFunction"], Resource = [for f in local.url_functions : f.arn] },
    ]
  })
}

output "api_id" {
  description = "The ID of the HTTP API, for custom domains. Null with function URLs."
  value       = local.make_api ? aws_apigatewayv2_api.this[0].id : null
}

output "queue_urls" {
  description = "The URL of the SQS queue of each queue, from which consumers receive."
  value       = { for name, q in aws_sqs_queue.jobs : name => q.url }
}

output "queue_arns" {
  description = "The ARN of the SQS queue of each queue, for event source mappings and policies of consumers."
  value       = { for name, q in aws_sqs_queue.jobs : name => q.arn }
}

output "dead_letter_queue_urls" {
  description = "The URL of the dead-letter queue of each queue."
  value       = { for name, q in aws_sqs_queue.dead : name => q.url }
}

output "table_names" {
  description = "The names of the DynamoDB tables: policies, outbox and locks."
  value = {
    policies = aws_dynamodb_table.policies.name
    outbox   = aws_dynamodb_table.outbox.name
    locks    = aws_dynamodb_table.locks.name
  }
}

output "function_names" {
  description = "The names of the Lambda functions: lock, enqueue, dispatcher and limit."
  value       = { for name, f in local.functions : name => f.name }
}

output "role_arns" {
  description = "The ARN of the role of each function."
  value       = { for name, f in local.functions : name => f.role_arn }
}

output "log_group_names" {
  description = "The log group of each function."
  value       = { for name, f in local.functions : name => f.log_group }
}

output "redis" {
  description = "The connection to Redis: url, cluster (whether it uses the cluster protocol) and auth."
  value       = { url = local.redis.url, cluster = local.redis.cluster, auth = local.redis.auth }
}

output "vpc_id" {
  description = "The VPC of the functions. Null without a VPC."
  value       = local.vpc_id
}

output "function_security_group_id" {
  description = "The security group of the functions, for rules that admit them to your resources. Null without a VPC."
  value       = var.attach_vpc ? aws_security_group.functions[0].id : null
}

output "encryption_key_arn" {
  description = "The KMS key of all data at rest. Consumers need kms:Decrypt on it to read the queues."
  value       = local.key_arn
}

output "authorizer_ids" {
  description = "The ID of the REQUEST authorizer of each API in var.authorizer. Set it as authorizer_id of the API's routes."
  value       = { for name, a in aws_apigatewayv2_authorizer.this : name => a.id }
}

output "alarm_arns" {
  description = "The ARN of each CloudWatch alarm, by name."
  value       = merge({ for name, a in aws_cloudwatch_metric_alarm.metric : name => a.arn }, { for name, a in aws_cloudwatch_metric_alarm.computed : name => a.arn })
}

output "dashboard_name" {
  description = "The name of the CloudWatch dashboard. Null without a dashboard."
  value       = var.dashboard ? aws_cloudwatch_dashboard.this[0].dashboard_name : null
}
