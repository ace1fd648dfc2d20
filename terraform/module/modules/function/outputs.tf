output "arn" {
  description = "The function's ARN."
  value       = aws_lambda_function.this.arn
}

output "name" {
  description = "The function's name."
  value       = aws_lambda_function.this.function_name
}

output "invoke_arn" {
  description = "The ARN with which API Gateway invokes the function."
  value       = aws_lambda_function.this.invoke_arn
}

output "role_arn" {
  description = "The ARN of the function's role."
  value       = aws_iam_role.this.arn
}

output "role_name" {
  description = "The name of the function's role."
  value       = aws_iam_role.this.name
}

output "log_group" {
  description = "The name of the function's log group."
  value       = aws_cloudwatch_log_group.this.name
}

# For the module's tests: a test can read the resources of a nested module only through outputs.
output "wiring" {
  description = "The resources of the function."
  value = {
    function       = aws_lambda_function.this
    policy         = jsondecode(aws_iam_role_policy.this.policy)
    trust          = jsondecode(aws_iam_role.this.assume_role_policy)
    log_group      = aws_cloudwatch_log_group.this
    log_depends_on = aws_lambda_function.this.logging_config[0].log_group
  }
}
