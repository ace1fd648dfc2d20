# EventBridge Scheduler invokes the dispatcher every minute.

resource "aws_scheduler_schedule_group" "this" {
  name = var.name
  tags = local.tags
}

resource "aws_scheduler_schedule" "dispatcher" {
  name                = "${var.name}-dispatcher"
  description         = "Invokes the dispatcher of Sluice, which runs until the next invocation takes over"
  group_name          = aws_scheduler_schedule_group.this.name
  schedule_expression = "rate(1 minute)"
  kms_key_arn         = local.key_arn

  flexible_time_window {
    mode = "OFF"
  }

  target {
    arn      = module.dispatcher.arn
    role_arn = aws_iam_role.scheduler.arn
    input    = jsonencode({ source = "schedule" })

    # Stop retrying after a minute: the next scheduled invocation is due by then.
    retry_policy {
      maximum_event_age_in_seconds = 60
      maximum_retry_attempts       = 2
    }

    dead_letter_config {
      arn = aws_sqs_queue.dispatcher_dead.arn
    }
  }
}

# Sends invocations that Lambda accepted but could not run to the same dead-letter queue.
resource "aws_lambda_function_event_invoke_config" "dispatcher" {
  function_name                = module.dispatcher.name
  maximum_event_age_in_seconds = 60
  maximum_retry_attempts       = 0

  destination_config {
    on_failure {
      destination = aws_sqs_queue.dispatcher_dead.arn
    }
  }
}

resource "aws_sqs_queue" "dispatcher_dead" {
  name                      = "${var.name}-dispatcher-dead"
  message_retention_seconds = 1209600
  kms_master_key_id         = local.key_arn
  tags                      = local.tags
}

# Forbids every SQS queue to move messages to the dispatcher's dead-letter queue, because this queue
# is only for failed invocations.
resource "aws_sqs_queue_redrive_allow_policy" "dispatcher_dead" {
  queue_url            = aws_sqs_queue.dispatcher_dead.id
  redrive_allow_policy = jsonencode({ redrivePermission = "denyAll" })
}

resource "aws_iam_role" "scheduler" {
  name        = "${var.name}-scheduler"
  description = "Lets EventBridge Scheduler invoke the dispatcher"
  tags        = local.tags

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "scheduler.amazonaws.com" }
      Action    = "sts:AssumeRole"
      Condition = {
        StringEquals = { "aws:SourceAccount" = local.account }
        ArnEquals    = { "aws:SourceArn" = aws_scheduler_schedule_group.this.arn }
      }
    }]
  })
}

resource "aws_iam_role_policy" "scheduler" {
  name = "dispatch"
  role = aws_iam_role.scheduler.id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      { Sid = "Invoke", Effect = "Allow", Action = ["lambda:InvokeFunction"], Resource = [module.dispatcher.arn] },
      { Sid = "DeadLetters", Effect = "Allow", Action = ["sqs:SendMessage"], Resource = [aws_sqs_queue.dispatcher_dead.arn] },
      { Sid = "Key", Effect = "Allow", Action = ["kms:Decrypt", "kms:GenerateDataKey"], Resource = [local.key_arn] },
    ]
  })
}
