# One key encrypts all data at rest: tables, queues, logs, environment variables and the cache.

locals {
  make_key = var.encryption_key == null
  key_arn  = local.make_key ? aws_kms_key.this[0].arn : var.encryption_key.arn
}

resource "aws_kms_key" "this" {
  count = local.make_key ? 1 : 0

  description             = "Sluice deployment ${var.name}: data at rest"
  enable_key_rotation     = true
  deletion_window_in_days = 30
  tags                    = local.tags

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        # Lets IAM policies of the account grant access. Without this statement, nobody could
        # administer the key.
        Sid       = "Account"
        Effect    = "Allow"
        Principal = { AWS = "arn:${local.partition}:iam::${local.account}:root" }
        Action    = "kms:*"
        Resource  = "*"
      },
      {
        Sid       = "Logs"
        Effect    = "Allow"
        Principal = { Service = "logs.${local.region}.amazonaws.com" }
        Action    = ["kms:Encrypt", "kms:Decrypt", "kms:ReEncryptFrom", "kms:ReEncryptTo", "kms:GenerateDataKey", "kms:DescribeKey"]
        Resource  = "*"
        Condition = {
          ArnLike = { "kms:EncryptionContext:aws:logs:arn" = [for prefix in local.log_prefixes : "arn:${local.partition}:logs:${local.region}:${local.account}:log-group:${prefix}*"] }
        }
      },
      {
        # Lets alarms notify an SNS topic that is encrypted with this key.
        Sid       = "Alarms"
        Effect    = "Allow"
        Principal = { Service = "cloudwatch.amazonaws.com" }
        Action    = ["kms:Decrypt", "kms:GenerateDataKey"]
        Resource  = "*"
        Condition = { StringEquals = { "aws:SourceAccount" = local.account } }
      },
    ]
  })
}

resource "aws_kms_alias" "this" {
  count = local.make_key ? 1 : 0

  name          = "alias/${var.name}"
  target_key_id = aws_kms_key.this[0].key_id
}

locals {
  # The name of every log group starts with one of these prefixes.
  log_prefixes = ["/aws/lambda/${var.name}-", "/aws/vendedlogs/${var.name}/"]
}
