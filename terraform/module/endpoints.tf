# VPC endpoints for the services that the functions call: DynamoDB, SQS and, for the password of an
# existing cache, Secrets Manager.

locals {
  make_endpoints = local.make_vpc || (var.attach_vpc && try(var.vpc.create_endpoints, false))
  with_secret    = try(var.existing_cache.auth, "none") == "password"

  # The endpoint policies restrict callers with conditions on aws:PrincipalArn: a role's ARN in
  # Principal would not match the role's sessions.
  only = { for name, f in local.functions : name => { ArnEquals = { "aws:PrincipalArn" = f.role_arn } } }
  all  = { ArnEquals = { "aws:PrincipalArn" = [for f in local.functions : f.role_arn] } }

  interface_endpoints = { for service, statement in {
    sqs = {
      Sid       = "SendJobs"
      Effect    = "Allow"
      Principal = "*"
      Action    = ["sqs:SendMessage"]
      Resource  = local.job_queue_arns
      Condition = local.only["dispatcher"]
    }
    secretsmanager = {
      Sid       = "ReadSecret"
      Effect    = "Allow"
      Principal = "*"
      Action    = ["secretsmanager:GetSecretValue"]
      Resource  = [try(var.existing_cache.secret_arn, null)]
      Condition = local.all
    }
  } : service => statement if local.make_endpoints && (service != "secretsmanager" || local.with_secret) }
}

resource "aws_vpc_endpoint" "dynamodb" {
  count = local.make_endpoints ? 1 : 0

  vpc_id            = local.vpc_id
  service_name      = "com.amazonaws.${local.region}.dynamodb"
  vpc_endpoint_type = "Gateway"
  route_table_ids   = local.make_vpc ? [aws_route_table.private[0].id] : var.vpc.route_table_ids
  tags              = merge(local.tags, { Name = "${var.name}-dynamodb" })

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "Tables"
      Effect    = "Allow"
      Principal = "*"
      Action    = sort(distinct(flatten(values(local.table_actions))))
      Resource  = [aws_dynamodb_table.policies.arn, aws_dynamodb_table.outbox.arn, aws_dynamodb_table.locks.arn]
      Condition = local.all
    }]
  })

  lifecycle {
    precondition {
      condition     = local.make_vpc || length(try(var.vpc.route_table_ids, [])) > 0
      error_message = "vpc.create_endpoints requires vpc.route_table_ids, because the DynamoDB endpoint is an entry in the route tables."
    }
  }
}

resource "aws_vpc_endpoint" "interface" {
  for_each = local.interface_endpoints

  vpc_id              = local.vpc_id
  service_name        = "com.amazonaws.${local.region}.${each.key}"
  vpc_endpoint_type   = "Interface"
  private_dns_enabled = true
  subnet_ids          = local.subnet_ids
  security_group_ids  = [aws_security_group.endpoints[0].id]
  tags                = merge(local.tags, { Name = "${var.name}-${each.key}" })

  policy = jsonencode({ Version = "2012-10-17", Statement = [each.value] })
}
