# The functions: their code, environment and permissions.

mock_provider "aws" {}

override_data {
  target = data.aws_caller_identity.current
  values = { account_id = "111122223333" }
}

override_data {
  target = data.aws_partition.current
  values = { partition = "aws" }
}

override_data {
  target = data.aws_region.current
  values = { region = "eu-central-1" }
}

override_data {
  target = data.aws_availability_zones.available
  values = { names = ["eu-central-1a", "eu-central-1b", "eu-central-1c"] }
}

override_resource {
  target = aws_kms_key.this
  values = { arn = "arn:aws:kms:eu-central-1:111122223333:key/sluice" }
}

override_resource {
  target = aws_dynamodb_table.policies
  values = { arn = "arn:aws:dynamodb:eu-central-1:111122223333:table/sluice-policies" }
}

override_resource {
  target = aws_dynamodb_table.outbox
  values = { arn = "arn:aws:dynamodb:eu-central-1:111122223333:table/sluice-outbox" }
}

override_resource {
  target = aws_dynamodb_table.locks
  values = { arn = "arn:aws:dynamodb:eu-central-1:111122223333:table/sluice-locks" }
}

override_resource {
  target = aws_sqs_queue.jobs
  values = { arn = "arn:aws:sqs:eu-central-1:111122223333:jobs", url = "https://sqs.eu-central-1.amazonaws.com/111122223333/jobs" }
}

override_resource {
  target = aws_sqs_queue.dispatcher_dead
  values = { arn = "arn:aws:sqs:eu-central-1:111122223333:sluice-dispatcher-dead" }
}

override_resource {
  target = aws_elasticache_user.functions
  values = { arn = "arn:aws:elasticache:eu-central-1:111122223333:user:sluice-functions" }
}

override_resource {
  target = aws_elasticache_replication_group.this
  values = {
    arn                      = "arn:aws:elasticache:eu-central-1:111122223333:replicationgroup:sluice"
    primary_endpoint_address = "master.sluice.abc123.euc1.cache.amazonaws.com"
  }
}

override_resource {
  target = module.lock.aws_iam_role.this
  values = { arn = "arn:aws:iam::111122223333:role/sluice-lock" }
}

override_resource {
  target = module.enqueue.aws_iam_role.this
  values = { arn = "arn:aws:iam::111122223333:role/sluice-enqueue" }
}

override_resource {
  target = module.dispatcher.aws_iam_role.this
  values = { arn = "arn:aws:iam::111122223333:role/sluice-dispatcher" }
}

override_resource {
  target = module.limit.aws_iam_role.this
  values = { arn = "arn:aws:iam::111122223333:role/sluice-limit" }
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
  queues   = { orders = {}, mail = { fifo = true } }
}

run "each_function_runs_the_zip_on_arm64_with_its_own_role" {
  assert {
    condition = alltrue([for f in [module.lock, module.enqueue, module.dispatcher, module.limit] :
      f.wiring.function.runtime == "provided.al2023" && f.wiring.function.handler == "bootstrap" && f.wiring.function.architectures == tolist(["arm64"])
    ])
    error_message = "Every function must run bootstrap on provided.al2023 and arm64."
  }
  assert {
    condition = [for f in [module.lock, module.enqueue, module.dispatcher, module.limit] : f.wiring.function.filename] == [
      "tests/packages/lock.zip", "tests/packages/enqueue.zip", "tests/packages/dispatcher.zip", "tests/packages/limit.zip",
    ]
    error_message = "Each function must have its own zip."
  }
  assert {
    condition     = module.lock.wiring.function.source_code_hash == filebase64sha256("tests/packages/lock.zip")
    error_message = "A changed zip must change the source code hash."
  }
  assert {
    condition = [for f in [module.lock, module.enqueue, module.dispatcher, module.limit] : f.wiring.function.role] == [
      for name in ["lock", "enqueue", "dispatcher", "limit"] : "arn:aws:iam::111122223333:role/sluice-${name}"
    ]
    error_message = "Each function must have its own role."
  }
}

run "each_function_gets_its_environment" {
  assert {
    condition = module.lock.wiring.function.environment[0].variables == tomap({
      SLUICE_LOG_LEVEL          = "info"
      SLUICE_METRICS_NAMESPACE  = "Sluice/sluice"
      SLUICE_REDIS_URL          = "rediss://master.sluice.abc123.euc1.cache.amazonaws.com:6379"
      SLUICE_REDIS_CLUSTER      = "false"
      SLUICE_REDIS_AUTH         = "iam"
      SLUICE_REDIS_USER         = "sluice-functions"
      SLUICE_REDIS_IAM_RESOURCE = "sluice"
      SLUICE_LOCK_TABLE         = "sluice-locks"
    })
    error_message = "The lock function has the wrong environment: ${jsonencode(module.lock.wiring.function.environment)}"
  }
  assert {
    condition = { for name, value in module.enqueue.wiring.function.environment[0].variables : name => value if !strcontains(name, "REDIS") } == {
      SLUICE_LOG_LEVEL         = "info"
      SLUICE_METRICS_NAMESPACE = "Sluice/sluice"
      SLUICE_OUTBOX_TABLE      = "sluice-outbox"
      SLUICE_QUEUES            = "{\"mail\":\"https://sqs.eu-central-1.amazonaws.com/111122223333/jobs\",\"orders\":\"https://sqs.eu-central-1.amazonaws.com/111122223333/jobs\"}"
      SLUICE_QUEUE_SHARDS      = "4"
      SLUICE_DEDUP_WINDOW_MS   = "3600000"
      SLUICE_DEAD_RETENTION_MS = "1209600000"
    }
    error_message = "The enqueue function has the wrong environment: ${jsonencode(module.enqueue.wiring.function.environment)}"
  }
  assert {
    condition     = module.dispatcher.wiring.function.environment[0].variables == module.enqueue.wiring.function.environment[0].variables
    error_message = "The enqueue and dispatcher functions must have the same queues, shards and tables."
  }
  assert {
    condition     = module.limit.wiring.function.environment[0].variables["SLUICE_POLICY_TABLE"] == "sluice-policies" && !contains(keys(module.limit.wiring.function.environment[0].variables), "SLUICE_AUTHORIZER_POLICY")
    error_message = "The limit function has the wrong environment: ${jsonencode(module.limit.wiring.function.environment)}"
  }
}

run "each_role_permits_only_the_calls_of_its_function" {
  assert {
    condition = { for s in module.lock.wiring.policy.Statement : s.Sid => [s.Action, s.Resource] if !contains(["Logs", "Key", "NetworkInterfaces", "NetworkInterfacesNotByTheCode", "Traces"], s.Sid) } == {
      ConnectToCache = [["elasticache:Connect"], ["arn:aws:elasticache:eu-central-1:111122223333:replicationgroup:sluice", "arn:aws:elasticache:eu-central-1:111122223333:user:sluice-functions"]]
      Locks          = [["dynamodb:GetItem", "dynamodb:PutItem"], ["arn:aws:dynamodb:eu-central-1:111122223333:table/sluice-locks"]]
    }
    error_message = "The lock function has the wrong permissions: ${jsonencode(module.lock.wiring.policy)}"
  }
  assert {
    condition = { for s in module.enqueue.wiring.policy.Statement : s.Sid => s.Resource if !contains(["Logs", "Key", "NetworkInterfaces", "NetworkInterfacesNotByTheCode", "Traces", "ConnectToCache"], s.Sid) } == {
      Outbox = ["arn:aws:dynamodb:eu-central-1:111122223333:table/sluice-outbox"]
    }
    error_message = "The enqueue function has the wrong permissions: ${jsonencode(module.enqueue.wiring.policy)}"
  }
  assert {
    condition = { for s in module.dispatcher.wiring.policy.Statement : s.Sid => [s.Action, s.Resource] if contains(["SendJobs", "DeadInvocations"], s.Sid) } == {
      SendJobs        = [["sqs:SendMessage"], ["arn:aws:sqs:eu-central-1:111122223333:jobs", "arn:aws:sqs:eu-central-1:111122223333:jobs"]]
      DeadInvocations = [["sqs:SendMessage"], ["arn:aws:sqs:eu-central-1:111122223333:sluice-dispatcher-dead"]]
    }
    error_message = "The dispatcher function has the wrong permissions: ${jsonencode(module.dispatcher.wiring.policy)}"
  }
  assert {
    condition = { for s in module.limit.wiring.policy.Statement : s.Sid => s.Resource if !contains(["Logs", "Key", "NetworkInterfaces", "NetworkInterfacesNotByTheCode", "Traces", "ConnectToCache"], s.Sid) } == {
      Policies = ["arn:aws:dynamodb:eu-central-1:111122223333:table/sluice-policies"]
    }
    error_message = "The limit function has the wrong permissions: ${jsonencode(module.limit.wiring.policy)}"
  }
  assert {
    condition = alltrue(flatten([for f in [module.lock, module.enqueue, module.dispatcher, module.limit] : [
      for s in f.wiring.policy.Statement : alltrue([for a in s.Action : !strcontains(a, "*")])
    ]]))
    error_message = "No role may permit an action with a wildcard."
  }
  assert {
    condition = toset(flatten([for f in [module.lock, module.enqueue, module.dispatcher, module.limit] : [
      for s in f.wiring.policy.Statement : s.Sid if s.Effect == "Allow" && contains(s.Resource, "*")
    ]])) == toset(["NetworkInterfaces", "Traces"])
    error_message = "Only the statements NetworkInterfaces and Traces may permit actions on all resources."
  }
  assert {
    condition = [for s in module.lock.wiring.policy.Statement : s.Condition.ArnEquals["lambda:SourceFunctionArn"] if s.Sid == "NetworkInterfacesNotByTheCode" && s.Effect == "Deny"] == [
      "arn:aws:lambda:eu-central-1:111122223333:function:sluice-lock",
    ]
    error_message = "The function's own code must not be permitted to change network interfaces."
  }
}

run "log_groups_have_a_retention_and_a_key_before_the_function_writes" {
  assert {
    condition = alltrue([for f in [module.lock, module.enqueue, module.dispatcher, module.limit] :
      f.wiring.log_group.retention_in_days == 30 && f.wiring.log_group.kms_key_id == "arn:aws:kms:eu-central-1:111122223333:key/sluice"
      && f.wiring.log_group.name == "/aws/lambda/${f.wiring.function.function_name}" && f.wiring.function.logging_config[0].log_group == f.wiring.log_group.name
    ])
    error_message = "Each function must log to a group that has a retention and a key."
  }
  assert {
    condition     = alltrue([for f in [module.lock, module.enqueue, module.dispatcher, module.limit] : f.wiring.function.kms_key_arn == "arn:aws:kms:eu-central-1:111122223333:key/sluice"])
    error_message = "Environment variables must be encrypted with the deployment's key."
  }
}

run "functions_have_timeouts_and_concurrency" {
  assert {
    condition = [for f in [module.lock, module.enqueue, module.dispatcher, module.limit] : [f.wiring.function.timeout, f.wiring.function.reserved_concurrent_executions]] == [
      [29, 200], [10, 100], [120, 5], [10, 200],
    ]
    error_message = "The default timeouts or concurrency have changed."
  }
  assert {
    condition     = alltrue([for f in [module.lock, module.enqueue, module.dispatcher, module.limit] : f.wiring.function.tracing_config[0].mode == "Active" && length(f.wiring.function.vpc_config) == 1])
    error_message = "Functions must send traces and run in the VPC."
  }
}

run "a_setting_replaces_only_its_default" {
  variables {
    functions    = { limit = { memory_mb = 512 }, dispatcher = { timeout_seconds = 180, reserved_concurrency = -1 } }
    tracing      = false
    architecture = "x86_64"
    packages     = { s3 = { bucket = "artifacts", prefix = "sluice/1.0.0/", sha256 = { limit = "abc" } } }
  }
  assert {
    condition     = module.limit.wiring.function.memory_size == 512 && module.limit.wiring.function.timeout == 10
    error_message = "The given memory must be applied, and the timeout must keep its default."
  }
  assert {
    condition     = module.dispatcher.wiring.function.timeout == 180 && module.dispatcher.wiring.function.reserved_concurrent_executions == -1
    error_message = "The settings of the dispatcher must be applied."
  }
  assert {
    condition     = module.limit.wiring.function.s3_bucket == "artifacts" && module.limit.wiring.function.s3_key == "sluice/1.0.0/limit.zip" && module.limit.wiring.function.source_code_hash == "abc" && module.limit.wiring.function.filename == null
    error_message = "The zip must come from the bucket."
  }
  assert {
    condition     = module.limit.wiring.function.architectures == tolist(["x86_64"]) && module.limit.wiring.function.tracing_config[0].mode == "PassThrough" && !contains([for s in module.limit.wiring.policy.Statement : s.Sid], "Traces")
    error_message = "Without tracing, a function must have no permission for traces."
  }
}

run "only_the_lock_connects_to_quorum_nodes" {
  variables {
    quorum_nodes = 3
  }
  assert {
    condition     = length(split(",", module.lock.wiring.function.environment[0].variables["SLUICE_LOCK_NODES"])) == 3
    error_message = "The environment of the lock function must contain three nodes."
  }
  assert {
    condition     = module.lock.wiring.function.environment[0].variables["SLUICE_LOCK_USER"] == "sluice-functions" && module.lock.wiring.function.environment[0].variables["SLUICE_LOCK_IAM_RESOURCES"] == "sluice-quorum-1,sluice-quorum-2,sluice-quorum-3"
    error_message = "The environment of the lock function must name the cache of each node, because an IAM token is valid for one cache."
  }
  assert {
    condition     = length([for s in module.lock.wiring.policy.Statement : s if s.Sid == "ConnectToQuorum"]) == 1 && length([for s in module.limit.wiring.policy.Statement : s if s.Sid == "ConnectToQuorum"]) == 0
    error_message = "Only the lock function may connect to the quorum nodes."
  }
}
