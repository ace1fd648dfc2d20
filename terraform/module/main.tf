data "aws_caller_identity" "current" {}

data "aws_partition" "current" {}

data "aws_region" "current" {}

locals {
  account   = data.aws_caller_identity.current.account_id
  partition = data.aws_partition.current.partition
  region    = data.aws_region.current.region

  # Each deployment has its own namespace. In a shared namespace, the heartbeats of other
  # deployments would hide that this deployment's dispatcher has stopped.
  metrics_namespace = "Sluice/${var.name}"

  tags = merge({ "sluice:deployment" = var.name }, var.tags)

  # The defaults of var.functions. A lock request waits for at most 20 s, and API Gateway waits for
  # at most 30 s. EventBridge invokes the dispatcher every minute. Each invocation may run for 2
  # minutes, so that it can hand over to the next invocation without a gap.
  defaults = {
    lock       = { memory_mb = 256, timeout_seconds = 29, reserved_concurrency = 200 }
    enqueue    = { memory_mb = 256, timeout_seconds = 10, reserved_concurrency = 100 }
    dispatcher = { memory_mb = 256, timeout_seconds = 120, reserved_concurrency = 5 }
    limit      = { memory_mb = 256, timeout_seconds = 10, reserved_concurrency = 200 }
  }
  settings = { for name, d in local.defaults : name => {
    memory_mb            = coalesce(try(var.functions[name].memory_mb, null), d.memory_mb)
    timeout_seconds      = coalesce(try(var.functions[name].timeout_seconds, null), d.timeout_seconds)
    reserved_concurrency = coalesce(try(var.functions[name].reserved_concurrency, null), d.reserved_concurrency)
  } }

  functions = {
    lock       = module.lock
    enqueue    = module.enqueue
    dispatcher = module.dispatcher
    limit      = module.limit
  }
}
