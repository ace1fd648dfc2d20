output "endpoint" {
  description = "The API's URL, for the client, the command line and the provider sluicehq/sluice. Null with function URLs: see endpoints."
  value       = local.make_api ? aws_apigatewayv2_api.this[0].api_endpoint : null
}

output "endpoints" {
  description = "The URL by function (lock, enqueue, limit): the same for all with an HTTP API."
  value = local.make_api ? { for name in toset(values(local.routes)) : name => aws_apigatewayv2_api.this[0].api_endpoint } : {
    for name, u in aws_lambda_function_url.this : name => trimsuffix(u.function_url, "/")
  }
}

output "caller_policy" {
  description = "An IAM policy document that lets a caller use the API, all of it. Attach it to the roles of your services, or cut it down to the routes that they need."
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
  description = "The HTTP API's id, for custom domains; null with function URLs."
  value       = local.make_api ? aws_apigatewayv2_api.this[0].id : null
}

output "queue_urls" {
  description = "The SQS queue's URL by queue: what consumers receive from."
  value       = { for name, q in aws_sqs_queue.jobs : name => q.url }
}

output "queue_arns" {
  description = "The SQS queue's ARN by queue: for event source mappings and consumers' policies."
  value       = { for name, q in aws_sqs_queue.jobs : name => q.arn }
}

output "dead_letter_queue_urls" {
  description = "The dead-letter queue's URL by queue."
  value       = { for name, q in aws_sqs_queue.dead : name => q.url }
}

output "table_names" {
  description = "The DynamoDB tables: policies, outbox, locks."
  value = {
    policies = aws_dynamodb_table.policies.name
    outbox   = aws_dynamodb_table.outbox.name
    locks    = aws_dynamodb_table.locks.name
  }
}

output "function_names" {
  description = "The Lambda function by part: lock, enqueue, dispatcher, limit."
  value       = { for name, f in local.functions : name => f.name }
}

output "role_arns" {
  description = "The role that each function runs as."
  value       = { for name, f in local.functions : name => f.role_arn }
}

output "log_group_names" {
  description = "The log group by function."
  value       = { for name, f in local.functions : name => f.log_group }
}

output "redis" {
  description = "Where Redis is: url, cluster (whether it speaks the cluster protocol) and auth."
  value       = { url = local.redis.url, cluster = local.redis.cluster, auth = local.redis.auth }
}

output "vpc_id" {
  description = "The VPC that the functions run in; null without one."
  value       = local.vpc_id
}

output "function_security_group_id" {
  description = "The functions' security group, to let them into what is yours; null without a VPC."
  value       = var.attach_vpc ? aws_security_group.functions[0].id : null
}

output "encryption_key_arn" {
  description = "The KMS key of everything at rest. Consumers need kms:Decrypt on it to read the queues."
  value       = local.key_arn
}

output "authorizer_ids" {
  description = "The REQUEST authorizer's id by API of var.authorizer: set it as the authorizer_id of routes there."
  value       = { for name, a in aws_apigatewayv2_authorizer.this : name => a.id }
}

output "alarm_arns" {
  description = "The CloudWatch alarms by name."
  value       = merge({ for name, a in aws_cloudwatch_metric_alarm.metric : name => a.arn }, { for name, a in aws_cloudwatch_metric_alarm.computed : name => a.arn })
}

output "dashboard_name" {
  description = "The CloudWatch dashboard's name; null without one."
  value       = var.dashboard ? aws_cloudwatch_dashboard.this[0].dashboard_name : null
}
