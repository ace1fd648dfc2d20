# The schedule of the dispatcher, and the queues.

mock_provider "aws" {}

override_data {
  target = data.aws_caller_identity.current
  values = { account_id = "111122223333" }
}

override_data {
  target = data.aws_availability_zones.available
  values = { names = ["eu-central-1a", "eu-central-1b"] }
}

override_resource {
  target = aws_kms_key.this
  values = { arn = "arn:aws:kms:eu-central-1:111122223333:key/sluice" }
}

override_resource {
  target = aws_sqs_queue.dead
  values = { arn = "arn:aws:sqs:eu-central-1:111122223333:dead", id = "https://sqs.eu-central-1.amazonaws.com/111122223333/dead" }
}

override_resource {
  target = aws_sqs_queue.jobs
  values = { arn = "arn:aws:sqs:eu-central-1:111122223333:jobs", url = "https://sqs.eu-central-1.amazonaws.com/111122223333/jobs" }
}

override_resource {
  target = aws_sqs_queue.dispatcher_dead
  values = { arn = "arn:aws:sqs:eu-central-1:111122223333:dispatcher-dead" }
}

override_resource {
  target = module.dispatcher.aws_lambda_function.this
  values = { arn = "arn:aws:lambda:eu-central-1:111122223333:function:sluice-dispatcher" }
}

override_resource {
  target = aws_iam_role.scheduler
  values = { arn = "arn:aws:iam::111122223333:role/sluice-scheduler" }
}

override_resource {
  target = aws_scheduler_schedule_group.this
  values = { arn = "arn:aws:scheduler:eu-central-1:111122223333:schedule-group/sluice" }
}

variables {
  packages = { directory = "tests/packages" }
  queues = {
    orders = { consumer_timeout_seconds = 60, max_receive_count = 3 }
    mail   = { fifo = true }
  }
}

run "the_dispatcher_is_invoked_every_minute_with_bounded_retries" {
  assert {
    condition     = aws_scheduler_schedule.dispatcher.schedule_expression == "rate(1 minute)" && aws_scheduler_schedule.dispatcher.flexible_time_window[0].mode == "OFF"
    error_message = "The dispatcher must be invoked every minute, without a flexible window."
  }
  assert {
    condition     = aws_scheduler_schedule.dispatcher.target[0].arn == "arn:aws:lambda:eu-central-1:111122223333:function:sluice-dispatcher" && aws_scheduler_schedule.dispatcher.target[0].role_arn == "arn:aws:iam::111122223333:role/sluice-scheduler"
    error_message = "The schedule must invoke the dispatcher, with its own role."
  }
  assert {
    condition     = aws_scheduler_schedule.dispatcher.target[0].retry_policy[0].maximum_event_age_in_seconds == 60 && aws_scheduler_schedule.dispatcher.target[0].retry_policy[0].maximum_retry_attempts == 2
    error_message = "EventBridge must stop retrying after a minute."
  }
  assert {
    condition = [
      aws_scheduler_schedule.dispatcher.target[0].dead_letter_config[0].arn,
      aws_lambda_function_event_invoke_config.dispatcher.destination_config[0].on_failure[0].destination,
    ] == ["arn:aws:sqs:eu-central-1:111122223333:dispatcher-dead", "arn:aws:sqs:eu-central-1:111122223333:dispatcher-dead"]
    error_message = "An invocation that fails in EventBridge or in Lambda must go to the dead-letter queue."
  }
  assert {
    condition     = module.dispatcher.wiring.function.timeout > 60
    error_message = "The dispatcher must run for longer than a minute, so that it overlaps with the next invocation."
  }
  assert {
    condition     = aws_lambda_function_event_invoke_config.dispatcher.maximum_event_age_in_seconds == 60
    error_message = "Lambda must discard an invocation of the dispatcher after a minute."
  }
}

run "only_the_schedule_may_assume_its_role_to_invoke_the_dispatcher" {
  assert {
    condition = jsondecode(aws_iam_role.scheduler.assume_role_policy).Statement[0].Condition == {
      StringEquals = { "aws:SourceAccount" = "111122223333" }
      ArnEquals    = { "aws:SourceArn" = "arn:aws:scheduler:eu-central-1:111122223333:schedule-group/sluice" }
    }
    error_message = "The role's trust policy must name the account and the schedule group."
  }
  assert {
    condition = { for s in jsondecode(aws_iam_role_policy.scheduler.policy).Statement : s.Sid => [s.Action, s.Resource] } == {
      Invoke      = [["lambda:InvokeFunction"], ["arn:aws:lambda:eu-central-1:111122223333:function:sluice-dispatcher"]]
      DeadLetters = [["sqs:SendMessage"], ["arn:aws:sqs:eu-central-1:111122223333:dispatcher-dead"]]
      Key         = [["kms:Decrypt", "kms:GenerateDataKey"], ["arn:aws:kms:eu-central-1:111122223333:key/sluice"]]
    }
    error_message = "The role has the wrong permissions: ${aws_iam_role_policy.scheduler.policy}"
  }
}

run "each_queue_is_encrypted_and_has_its_own_dead_letter_queue" {
  assert {
    condition     = { for name, q in aws_sqs_queue.jobs : name => q.name } == { orders = "sluice-jobs-orders", mail = "sluice-jobs-mail.fifo" }
    error_message = "A queue has the wrong name; the name of a FIFO queue must end in .fifo."
  }
  assert {
    condition     = { for name, q in aws_sqs_queue.dead : name => q.name } == { orders = "sluice-dead-orders", mail = "sluice-dead-mail.fifo" }
    error_message = "A dead-letter queue has the wrong name."
  }
  assert {
    condition = alltrue([for q in concat(values(aws_sqs_queue.jobs), values(aws_sqs_queue.dead), [aws_sqs_queue.dispatcher_dead]) :
      q.kms_master_key_id == "arn:aws:kms:eu-central-1:111122223333:key/sluice"
    ])
    error_message = "Every queue must be encrypted with the deployment's key."
  }
  assert {
    condition     = jsondecode(aws_sqs_queue.jobs["orders"].redrive_policy) == { deadLetterTargetArn = "arn:aws:sqs:eu-central-1:111122223333:dead", maxReceiveCount = 3 }
    error_message = "orders has the wrong redrive policy: ${aws_sqs_queue.jobs["orders"].redrive_policy}"
  }
  assert {
    condition     = jsondecode(aws_sqs_queue_redrive_allow_policy.dead["orders"].redrive_allow_policy) == { redrivePermission = "byQueue", sourceQueueArns = ["arn:aws:sqs:eu-central-1:111122223333:jobs"] }
    error_message = "A dead-letter queue must accept messages only from its own job queue."
  }
  assert {
    condition     = aws_sqs_queue.jobs["orders"].visibility_timeout_seconds == 360 && aws_sqs_queue.jobs["mail"].visibility_timeout_seconds == 180
    error_message = "The visibility timeout must be six times the consumer's timeout."
  }
  assert {
    condition     = aws_sqs_queue.jobs["mail"].fifo_queue == true && aws_sqs_queue.dead["mail"].fifo_queue == true && aws_sqs_queue.jobs["mail"].fifo_throughput_limit == "perMessageGroupId"
    error_message = "A FIFO queue needs a FIFO dead-letter queue and a throughput limit for each message group."
  }
  assert {
    condition     = length(aws_sqs_queue_policy.tls_only) == 5 && alltrue([for p in aws_sqs_queue_policy.tls_only : jsondecode(p.policy).Statement[0].Effect == "Deny"])
    error_message = "Every queue must reject plain HTTP."
  }
}

run "a_deployment_without_queues_still_has_locks_and_limits" {
  variables {
    queues = {}
  }
  assert {
    condition     = module.dispatcher.wiring.function.environment[0].variables["SLUICE_QUEUES"] == "{}"
    error_message = "The environment of the dispatcher must contain an empty list of queues."
  }
  assert {
    condition     = alltrue([for s in module.dispatcher.wiring.policy.Statement : length(s.Resource) > 0])
    error_message = "The statement for queues must have a resource, because IAM requires one."
  }
}
