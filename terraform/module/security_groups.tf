# The security groups permit connections from the functions to the cache and to AWS APIs only.

locals {
  cache_ports = local.make_serverless ? { primary = 6379, reader = 6380 } : { primary = 6379 }
  cache_group = var.attach_vpc && (local.make_cache || var.quorum_nodes > 0)

  existing_in_vpc = var.attach_vpc && var.existing_cache != null
  existing_group  = local.existing_in_vpc && (var.existing_cache == null ? false : var.existing_cache.security_group != null)
}

resource "aws_security_group" "functions" {
  count = var.attach_vpc ? 1 : 0

  name        = "${var.name}-functions"
  description = "Functions of Sluice"
  vpc_id      = local.vpc_id
  tags        = merge(local.tags, { Name = "${var.name}-functions" })

  lifecycle {
    precondition {
      condition     = !local.existing_in_vpc || local.existing_group || length(try(var.existing_cache.cidrs, [])) > 0
      error_message = "existing_cache requires security_group or cidrs; otherwise the security group of the functions blocks the connection."
    }
  }
}

resource "aws_security_group" "cache" {
  count = local.cache_group ? 1 : 0

  name        = "${var.name}-cache"
  description = "Caches of Sluice"
  vpc_id      = local.vpc_id
  tags        = merge(local.tags, { Name = "${var.name}-cache" })
}

resource "aws_security_group" "endpoints" {
  count = local.make_endpoints ? 1 : 0

  name        = "${var.name}-endpoints"
  description = "VPC endpoints of Sluice"
  vpc_id      = local.vpc_id
  tags        = merge(local.tags, { Name = "${var.name}-endpoints" })
}

resource "aws_vpc_security_group_ingress_rule" "cache_from_functions" {
  for_each = local.cache_group ? local.cache_ports : {}

  security_group_id            = aws_security_group.cache[0].id
  description                  = "Valkey from the functions (${each.key})"
  referenced_security_group_id = aws_security_group.functions[0].id
  ip_protocol                  = "tcp"
  from_port                    = each.value
  to_port                      = each.value
  tags                         = local.tags
}

resource "aws_vpc_security_group_egress_rule" "functions_to_cache" {
  for_each = local.cache_group ? local.cache_ports : {}

  security_group_id            = aws_security_group.functions[0].id
  description                  = "Valkey (${each.key})"
  referenced_security_group_id = aws_security_group.cache[0].id
  ip_protocol                  = "tcp"
  from_port                    = each.value
  to_port                      = each.value
  tags                         = local.tags
}

resource "aws_vpc_security_group_ingress_rule" "existing_cache_from_functions" {
  count = local.existing_group ? 1 : 0

  security_group_id            = var.existing_cache.security_group.id
  description                  = "Redis from the functions of ${var.name}"
  referenced_security_group_id = aws_security_group.functions[0].id
  ip_protocol                  = "tcp"
  from_port                    = var.existing_cache.port
  to_port                      = var.existing_cache.port
  tags                         = local.tags
}

resource "aws_vpc_security_group_egress_rule" "functions_to_existing_cache" {
  count = local.existing_group ? 1 : 0

  security_group_id            = aws_security_group.functions[0].id
  description                  = "The existing Redis"
  referenced_security_group_id = var.existing_cache.security_group.id
  ip_protocol                  = "tcp"
  from_port                    = var.existing_cache.port
  to_port                      = var.existing_cache.port
  tags                         = local.tags
}

resource "aws_vpc_security_group_egress_rule" "functions_to_existing_cidrs" {
  for_each = local.existing_in_vpc ? toset(var.existing_cache.cidrs) : toset([])

  security_group_id = aws_security_group.functions[0].id
  description       = "The existing Redis"
  cidr_ipv4         = each.key
  ip_protocol       = "tcp"
  from_port         = var.existing_cache.port
  to_port           = var.existing_cache.port
  tags              = local.tags
}

resource "aws_vpc_security_group_ingress_rule" "endpoints_from_functions" {
  count = local.make_endpoints ? 1 : 0

  security_group_id            = aws_security_group.endpoints[0].id
  description                  = "HTTPS from the functions"
  referenced_security_group_id = aws_security_group.functions[0].id
  ip_protocol                  = "tcp"
  from_port                    = 443
  to_port                      = 443
  tags                         = local.tags
}

resource "aws_vpc_security_group_egress_rule" "functions_to_endpoints" {
  count = local.make_endpoints ? 1 : 0

  security_group_id            = aws_security_group.functions[0].id
  description                  = "SQS and Secrets Manager through their endpoints"
  referenced_security_group_id = aws_security_group.endpoints[0].id
  ip_protocol                  = "tcp"
  from_port                    = 443
  to_port                      = 443
  tags                         = local.tags
}

resource "aws_vpc_security_group_egress_rule" "functions_to_dynamodb" {
  count = local.make_endpoints ? 1 : 0

  security_group_id = aws_security_group.functions[0].id
  description       = "DynamoDB through its gateway endpoint"
  prefix_list_id    = aws_vpc_endpoint.dynamodb[0].prefix_list_id
  ip_protocol       = "tcp"
  from_port         = 443
  to_port           = 443
  tags              = local.tags
}

# For an existing VPC in which the module creates no endpoints. AWS APIs have no fixed list of
# addresses, so the functions may connect with HTTPS to every address that the VPC's routes reach.
# The functions sign their requests, and their roles permit only the calls that they need.
#trivy:ignore:AWS-0104
resource "aws_vpc_security_group_egress_rule" "functions_to_aws" {
  count = var.attach_vpc && !local.make_endpoints ? 1 : 0

  security_group_id = aws_security_group.functions[0].id
  description       = "AWS APIs through the routes of the VPC"
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "tcp"
  from_port         = 443
  to_port           = 443
  tags              = local.tags
}
