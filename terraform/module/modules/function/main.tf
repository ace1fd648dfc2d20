# A Lambda function with its role and its log group. Terraform creates the log group first, so that
# the group has a retention and a key before the function writes to it.

resource "aws_cloudwatch_log_group" "this" {
  name              = "/aws/lambda/${var.name}"
  retention_in_days = var.log_retention_days
  kms_key_id        = var.key_arn
  tags              = var.tags
}

resource "aws_lambda_function" "this" {
  function_name = var.name
  description   = var.description
  role          = aws_iam_role.this.arn
  tags          = var.tags

  runtime          = "provided.al2023"
  handler          = "bootstrap"
  architectures    = [var.architecture]
  filename         = var.code.filename
  source_code_hash = var.code.hash
  s3_bucket        = var.code.s3_bucket
  s3_key           = var.code.s3_key

  memory_size                    = var.settings.memory_mb
  timeout                        = var.settings.timeout_seconds
  reserved_concurrent_executions = var.settings.reserved_concurrency
  kms_key_arn                    = var.key_arn

  environment {
    variables = var.environment
  }

  logging_config {
    log_group  = aws_cloudwatch_log_group.this.name
    log_format = "Text" # the function writes JSON; Lambda's JSON format would wrap its embedded metrics
  }

  tracing_config {
    mode = var.tracing ? "Active" : "PassThrough"
  }

  dynamic "vpc_config" {
    for_each = var.vpc_config == null ? [] : [var.vpc_config]
    content {
      subnet_ids         = vpc_config.value.subnet_ids
      security_group_ids = vpc_config.value.security_group_ids
    }
  }

  # Lambda needs the role's permissions to create and to delete a function in a VPC.
  depends_on = [aws_iam_role_policy.this]
}
