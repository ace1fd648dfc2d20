# The four functions, with the environment and the permissions of each.

locals {
  directory = coalesce(var.packages.directory, fileexists("dist/lock.zip") ? "dist" : "${path.module}/../../dist")

  zip = { for name in keys(local.defaults) : name => {
    filename  = var.packages.s3 == null ? "${local.directory}/${var.architecture == "x86_64" ? "amd64/" : ""}${name}.zip" : null
    s3_bucket = var.packages.s3 == null ? null : var.packages.s3.bucket
    s3_key    = var.packages.s3 == null ? null : "${var.packages.s3.prefix}${name}.zip"
  } }
  code = { for name, z in local.zip : name => merge(z, {
    hash = z.filename == null ? try(var.packages.s3.sha256[name], null) : filebase64sha256(z.filename)
  }) }

  environment = { for name, value in {
    SLUICE_LOG_LEVEL          = var.log_level
    SLUICE_METRICS_NAMESPACE  = local.metrics_namespace
    SLUICE_REDIS_URL          = local.redis.url
    SLUICE_REDIS_CLUSTER      = tostring(local.redis.cluster)
    SLUICE_REDIS_AUTH         = local.redis.auth
    SLUICE_REDIS_USER         = local.redis.user
    SLUICE_REDIS_IAM_RESOURCE = local.redis.iam_resource
    SLUICE_REDIS_SERVERLESS   = local.redis.serverless ? "true" : null
    SLUICE_REDIS_SECRET_ARN   = local.redis.secret_arn
  } : name => value if value != null }

  queue_environment = {
    SLUICE_OUTBOX_TABLE      = aws_dynamodb_table.outbox.name
    SLUICE_QUEUES            = jsonencode({ for name, q in aws_sqs_queue.jobs : name => q.url })
    SLUICE_QUEUE_SHARDS      = tostring(var.queue_shards)
    SLUICE_DEDUP_WINDOW_MS   = format("%d", var.dedup_window_ms)
    SLUICE_DEAD_RETENTION_MS = format("%d", var.dead_retention_ms)
  }

  vpc_config = var.attach_vpc ? { subnet_ids = local.subnet_ids, security_group_ids = [aws_security_group.functions[0].id] } : null
}

module "lock" {
  source = "./modules/function"

  name               = "${var.name}-lock"
  description        = "Locks and semaphores"
  account            = local.account
  partition          = local.partition
  region             = local.region
  code               = local.code["lock"]
  architecture       = var.architecture
  settings           = local.settings["lock"]
  vpc_config         = local.vpc_config
  key_arn            = local.key_arn
  log_retention_days = var.log_retention_days
  tracing            = var.tracing
  tags               = local.tags
  statements         = concat(local.redis_statements, local.quorum_statements, local.table_statements["lock"])
  environment = merge(
    local.environment,
    { SLUICE_LOCK_TABLE = aws_dynamodb_table.locks.name },
    var.quorum_nodes == 0 ? {} : {
      SLUICE_LOCK_NODES         = join(",", local.quorum_urls)
      SLUICE_LOCK_USER          = aws_elasticache_user.functions[0].user_name
      SLUICE_LOCK_IAM_RESOURCES = join(",", [for node in aws_elasticache_replication_group.quorum : node.replication_group_id])
    },
  )
}

module "enqueue" {
  source = "./modules/function"

  name               = "${var.name}-enqueue"
  description        = "Accepts delayed jobs"
  account            = local.account
  partition          = local.partition
  region             = local.region
  code               = local.code["enqueue"]
  architecture       = var.architecture
  settings           = local.settings["enqueue"]
  vpc_config         = local.vpc_config
  key_arn            = local.key_arn
  log_retention_days = var.log_retention_days
  tracing            = var.tracing
  tags               = local.tags
  statements         = concat(local.redis_statements, local.table_statements["enqueue"])
  environment        = merge(local.environment, local.queue_environment)
}

module "dispatcher" {
  source = "./modules/function"

  name               = "${var.name}-dispatcher"
  description        = "Sends due jobs to SQS"
  account            = local.account
  partition          = local.partition
  region             = local.region
  code               = local.code["dispatcher"]
  architecture       = var.architecture
  settings           = local.settings["dispatcher"]
  vpc_config         = local.vpc_config
  key_arn            = local.key_arn
  log_retention_days = var.log_retention_days
  tracing            = var.tracing
  tags               = local.tags
  statements         = concat(local.redis_statements, local.table_statements["dispatcher"], local.dispatch_statements)
  environment        = merge(local.environment, local.queue_environment)
}

module "limit" {
  source = "./modules/function"

  name               = "${var.name}-limit"
  description        = "Rate limits, their policies, and the health check"
  account            = local.account
  partition          = local.partition
  region             = local.region
  code               = local.code["limit"]
  architecture       = var.architecture
  settings           = local.settings["limit"]
  vpc_config         = local.vpc_config
  key_arn            = local.key_arn
  log_retention_days = var.log_retention_days
  tracing            = var.tracing
  tags               = local.tags
  statements         = concat(local.redis_statements, local.table_statements["limit"])
  environment = merge(
    local.environment,
    { SLUICE_POLICY_TABLE = aws_dynamodb_table.policies.name },
    { for name, value in {
      SLUICE_AUTHORIZER_POLICY = try(var.authorizer.policy, null)
      SLUICE_AUTHORIZER_KEY    = try(var.authorizer.key, null)
    } : name => value if value != null },
  )
}
