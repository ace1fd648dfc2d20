resource "aws_iam_role" "this" {
  name        = var.name
  description = "${var.name}: ${var.description}"
  tags        = var.tags

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "lambda.amazonaws.com" }
      Action    = "sts:AssumeRole"
    }]
  })
}

locals {
  function_arn = "arn:${var.partition}:lambda:${var.region}:${var.account}:function:${var.name}"

  logs = [{
    Sid      = "Logs"
    Effect   = "Allow"
    Action   = ["logs:CreateLogStream", "logs:PutLogEvents"]
    Resource = ["${aws_cloudwatch_log_group.this.arn}:*"]
  }]

  key = [{
    Sid      = "Key"
    Effect   = "Allow"
    Action   = ["kms:Decrypt", "kms:GenerateDataKey"]
    Resource = [var.key_arn]
  }]

  network_actions = [
    "ec2:AssignPrivateIpAddresses", "ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets", "ec2:UnassignPrivateIpAddresses",
  ]

  # Lambda uses the function's role to create network interfaces, and requires these permissions on
  # all resources. The second statement denies the same calls to the function's own code.
  network = [for s in [
    { Sid = "NetworkInterfaces", Effect = "Allow", Action = local.network_actions, Resource = ["*"] },
    {
      Sid       = "NetworkInterfacesNotByTheCode"
      Effect    = "Deny"
      Action    = local.network_actions
      Resource  = ["*"]
      Condition = { ArnEquals = { "lambda:SourceFunctionArn" = local.function_arn } }
    },
  ] : s if var.vpc_config != null]

  # X-Ray supports no resource-level permissions, so Resource must be "*".
  tracing = [for s in [
    { Sid = "Traces", Effect = "Allow", Action = ["xray:PutTelemetryRecords", "xray:PutTraceSegments"], Resource = ["*"] },
  ] : s if var.tracing]
}

resource "aws_iam_role_policy" "this" {
  name = "function"
  role = aws_iam_role.this.id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(local.logs, local.key, local.network, local.tracing, [
      for s in var.statements : { Sid = s.sid, Effect = "Allow", Action = s.actions, Resource = s.resources }
    ])
  })
}
