# DynamoDB tables for policies, for jobs enqueued while Redis is unavailable, and for locks with
# consistency = "strong". A test compares the tables' keys with the Go code in shared.

resource "aws_dynamodb_table" "policies" {
  name                        = "${var.name}-policies"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "name"
  deletion_protection_enabled = var.deletion_protection
  tags                        = local.tags

  attribute {
    name = "name"
    type = "S"
  }

  point_in_time_recovery {
    enabled = true
  }

  server_side_encryption {
    enabled     = true
    kms_key_arn = local.key_arn
  }
}

resource "aws_dynamodb_table" "outbox" {
  name                        = "${var.name}-outbox"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "pk"
  range_key                   = "sk"
  deletion_protection_enabled = var.deletion_protection
  tags                        = local.tags

  attribute {
    name = "pk"
    type = "S"
  }

  attribute {
    name = "sk"
    type = "S"
  }

  ttl {
    attribute_name = "ttl"
    enabled        = true
  }

  point_in_time_recovery {
    enabled = true
  }

  server_side_encryption {
    enabled     = true
    kms_key_arn = local.key_arn
  }
}

resource "aws_dynamodb_table" "locks" {
  name                        = "${var.name}-locks"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "name"
  deletion_protection_enabled = var.deletion_protection
  tags                        = local.tags

  attribute {
    name = "name"
    type = "S"
  }

  ttl {
    attribute_name = "ttl"
    enabled        = true
  }

  point_in_time_recovery {
    enabled = true
  }

  server_side_encryption {
    enabled     = true
    kms_key_arn = local.key_arn
  }
}
