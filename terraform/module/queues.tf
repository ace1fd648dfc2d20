# An SQS queue and a dead-letter queue for each job queue.

locals {
  queue_names = { for name, q in var.queues : name => "${var.name}-jobs-${name}${q.fifo ? ".fifo" : ""}" }
  dead_names  = { for name, q in var.queues : name => "${var.name}-dead-${name}${q.fifo ? ".fifo" : ""}" }
}

resource "aws_sqs_queue" "jobs" {
  for_each = var.queues

  name                       = local.queue_names[each.key]
  fifo_queue                 = each.value.fifo ? true : null
  deduplication_scope        = each.value.fifo ? "messageGroup" : null
  fifo_throughput_limit      = each.value.fifo ? "perMessageGroupId" : null
  visibility_timeout_seconds = min(43200, 6 * each.value.consumer_timeout_seconds)
  message_retention_seconds  = each.value.retention_seconds
  max_message_size           = 1048576
  receive_wait_time_seconds  = 20
  kms_master_key_id          = local.key_arn
  tags                       = merge(local.tags, { "sluice:queue" = each.key })

  redrive_policy = jsonencode({
    deadLetterTargetArn = aws_sqs_queue.dead[each.key].arn
    maxReceiveCount     = each.value.max_receive_count
  })
}

# The dead-letter queue for messages that consumers failed to process. Dead jobs are not in this
# queue: Redis keeps them for a redrive.
resource "aws_sqs_queue" "dead" {
  for_each = var.queues

  name                      = local.dead_names[each.key]
  fifo_queue                = each.value.fifo ? true : null
  message_retention_seconds = 1209600
  max_message_size          = 1048576
  kms_master_key_id         = local.key_arn
  tags                      = merge(local.tags, { "sluice:queue" = each.key })
}

# Lets only one SQS queue move messages to each dead-letter queue: the job queue to which the
# dead-letter queue belongs.
resource "aws_sqs_queue_redrive_allow_policy" "dead" {
  for_each = var.queues

  queue_url = aws_sqs_queue.dead[each.key].id
  redrive_allow_policy = jsonencode({
    redrivePermission = "byQueue"
    sourceQueueArns   = [aws_sqs_queue.jobs[each.key].arn]
  })
}

resource "aws_sqs_queue_policy" "tls_only" {
  for_each = merge(
    { for name, q in aws_sqs_queue.jobs : "jobs-${name}" => q },
    { for name, q in aws_sqs_queue.dead : "dead-${name}" => q },
    { "dispatcher-dead" = aws_sqs_queue.dispatcher_dead },
  )

  queue_url = each.value.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "TLSOnly"
      Effect    = "Deny"
      Principal = "*"
      Action    = "sqs:*"
      Resource  = each.value.arn
      Condition = { Bool = { "aws:SecureTransport" = "false" } }
    }]
  })
}
