# The permissions of each function on the stores that it uses. modules/function adds permissions for
# logs, the key, the network and traces.

locals {
  # The DynamoDB calls of the packages shared/lock/dynamolock, shared/delayqueue/outbox and
  # shared/policy/dynamopolicy. A test compares the calls with the Go code. A transaction needs the
  # permission for each of its operations.
  table_actions = {
    locks    = ["dynamodb:GetItem", "dynamodb:PutItem"]
    outbox   = ["dynamodb:DeleteItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query", "dynamodb:UpdateItem"]
    policies = ["dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Scan"]
  }

  table_statements = {
    lock       = [{ sid = "Locks", actions = local.table_actions.locks, resources = [aws_dynamodb_table.locks.arn] }]
    enqueue    = [{ sid = "Outbox", actions = local.table_actions.outbox, resources = [aws_dynamodb_table.outbox.arn] }]
    dispatcher = [{ sid = "Outbox", actions = local.table_actions.outbox, resources = [aws_dynamodb_table.outbox.arn] }]
    limit      = [{ sid = "Policies", actions = local.table_actions.policies, resources = [aws_dynamodb_table.policies.arn] }]
  }

  # sqs:SendMessage also permits SendMessageBatch. IAM rejects an empty list of resources. If the
  # deployment has no queues, the list contains the ARN of a queue that does not exist.
  job_queue_arns = length(var.queues) > 0 ? [for q in aws_sqs_queue.jobs : q.arn] : ["arn:${local.partition}:sqs:${local.region}:${local.account}:${var.name}-jobs-none"]
  dispatch_statements = [
    { sid = "SendJobs", actions = ["sqs:SendMessage"], resources = local.job_queue_arns },
    { sid = "DeadInvocations", actions = ["sqs:SendMessage"], resources = [aws_sqs_queue.dispatcher_dead.arn] },
  ]

  redis_statements = concat(
    local.redis.auth != "iam" ? [] : [{
      sid     = "ConnectToCache"
      actions = ["elasticache:Connect"]
      resources = var.existing_cache != null ? var.existing_cache.connect_arns : [
        local.make_serverless ? aws_elasticache_serverless_cache.this[0].arn : aws_elasticache_replication_group.this[0].arn,
        aws_elasticache_user.functions[0].arn,
      ]
    }],
    !local.with_secret ? [] : [{
      sid       = "ReadPassword"
      actions   = ["secretsmanager:GetSecretValue"]
      resources = [var.existing_cache.secret_arn]
    }],
    !local.with_secret || try(var.existing_cache.secret_kms_key_arn, null) == null ? [] : [{
      sid       = "DecryptPassword"
      actions   = ["kms:Decrypt"]
      resources = [var.existing_cache.secret_kms_key_arn]
    }],
  )

  quorum_statements = var.quorum_nodes == 0 ? [] : [{
    sid       = "ConnectToQuorum"
    actions   = ["elasticache:Connect"]
    resources = concat([for node in aws_elasticache_replication_group.quorum : node.arn], [aws_elasticache_user.functions[0].arn])
  }]
}
