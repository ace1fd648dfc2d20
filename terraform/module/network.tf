# The new VPC. It has only private subnets, without access to or from the internet.

data "aws_availability_zones" "available" {
  count = local.make_vpc ? 1 : 0

  state = "available"

  filter {
    name   = "opt-in-status"
    values = ["opt-in-not-required"]
  }
}

locals {
  make_vpc = var.attach_vpc && var.vpc == null

  zones = !local.make_vpc ? [] : (
    length(var.availability_zones) > 0 ? var.availability_zones : slice(data.aws_availability_zones.available[0].names, 0, 2)
  )
  # In an existing VPC, the zones are unknown. The empty string then lets AWS choose a zone for each
  # quorum node from the subnets' zones.
  quorum_zones = length(local.zones) > 0 ? local.zones : [""]

  vpc_id     = local.make_vpc ? aws_vpc.this[0].id : try(var.vpc.id, null)
  subnet_ids = local.make_vpc ? [for zone in local.zones : aws_subnet.private[zone].id] : try(var.vpc.subnet_ids, [])
}

resource "aws_vpc" "this" {
  count = local.make_vpc ? 1 : 0

  cidr_block           = var.vpc_cidr
  enable_dns_support   = true
  enable_dns_hostnames = true
  tags                 = merge(local.tags, { Name = var.name })
}

resource "aws_subnet" "private" {
  for_each = toset(local.zones)

  vpc_id            = aws_vpc.this[0].id
  availability_zone = each.key
  cidr_block        = cidrsubnet(var.vpc_cidr, 2, index(local.zones, each.key))
  tags              = merge(local.tags, { Name = "${var.name}-private-${each.key}" })
}

resource "aws_route_table" "private" {
  count = local.make_vpc ? 1 : 0

  vpc_id = aws_vpc.this[0].id
  tags   = merge(local.tags, { Name = "${var.name}-private" })
}

resource "aws_route_table_association" "private" {
  for_each = aws_subnet.private

  subnet_id      = each.value.id
  route_table_id = aws_route_table.private[0].id
}

# AWS creates a default security group with rules in each VPC. This resource removes the rules.
resource "aws_default_security_group" "this" {
  count = local.make_vpc ? 1 : 0

  vpc_id = aws_vpc.this[0].id
  tags   = merge(local.tags, { Name = "${var.name}-default-unused" })
}

resource "aws_flow_log" "this" {
  count = local.make_vpc && var.flow_logs ? 1 : 0

  vpc_id                   = aws_vpc.this[0].id
  traffic_type             = "ALL"
  log_destination_type     = "cloud-watch-logs"
  log_destination          = aws_cloudwatch_log_group.flow[0].arn
  iam_role_arn             = aws_iam_role.flow[0].arn
  max_aggregation_interval = 600
  tags                     = merge(local.tags, { Name = var.name })
}

resource "aws_cloudwatch_log_group" "flow" {
  count = local.make_vpc && var.flow_logs ? 1 : 0

  name              = "/aws/vendedlogs/${var.name}/flow"
  retention_in_days = var.log_retention_days
  kms_key_id        = local.key_arn
  tags              = local.tags
}

resource "aws_iam_role" "flow" {
  count = local.make_vpc && var.flow_logs ? 1 : 0

  name        = "${var.name}-flow-logs"
  description = "Lets VPC flow logs write to their log group"
  tags        = local.tags

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "vpc-flow-logs.amazonaws.com" }
      Action    = "sts:AssumeRole"
      Condition = {
        StringEquals = { "aws:SourceAccount" = local.account }
        ArnLike      = { "aws:SourceArn" = "arn:${local.partition}:ec2:${local.region}:${local.account}:vpc-flow-log/*" }
      }
    }]
  })
}

resource "aws_iam_role_policy" "flow" {
  count = local.make_vpc && var.flow_logs ? 1 : 0

  name = "write"
  role = aws_iam_role.flow[0].id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid      = "Logs"
      Effect   = "Allow"
      Action   = ["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"]
      Resource = ["${aws_cloudwatch_log_group.flow[0].arn}:*"]
    }]
  })
}
