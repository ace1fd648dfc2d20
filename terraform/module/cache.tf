# ElastiCache for Valkey, as a replication group or serverless. With var.existing_cache, the module
# creates neither.

locals {
  make_group      = var.existing_cache == null && var.cache.kind == "replication_group"
  make_serverless = var.existing_cache == null && var.cache.kind == "serverless"
  make_cache      = local.make_group || local.make_serverless
  cluster_mode    = local.make_group && var.cache.shards > 1

  # The functions share the cache's only user. The user authenticates with IAM tokens, so
  # Terraform's state contains no password.
  make_user = local.make_cache || var.quorum_nodes > 0

  # The user may access Sluice's keys, which all start with a hash tag, and its channels. It may
  # call every command that the scripts and the health check need, but no dangerous commands such as
  # KEYS, FLUSHALL and CONFIG. A test runs locks, jobs and limits with these permissions.
  access_string = "on ~{* &{* &sluice:* +@all -@admin -@dangerous +info"

  parameter_family = var.cache.engine_version == "7.2" ? "valkey7" : "valkey${split(".", var.cache.engine_version)[0]}"
}

resource "aws_elasticache_subnet_group" "this" {
  count = local.make_group || var.quorum_nodes > 0 ? 1 : 0

  name        = var.name
  description = "Caches of Sluice"
  subnet_ids  = local.subnet_ids
  tags        = local.tags
}

resource "aws_elasticache_parameter_group" "this" {
  count = local.make_group ? 1 : 0

  name        = "${var.name}-${local.parameter_family}${local.cluster_mode ? "-cluster" : ""}"
  family      = local.parameter_family
  description = "Sluice: no eviction"
  tags        = local.tags

  # A full cache must reject writes: the caller gets 503, or the job goes to the outbox. An eviction
  # would lose a lock or a job.
  parameter {
    name  = "maxmemory-policy"
    value = "noeviction"
  }

  parameter {
    name  = "cluster-enabled"
    value = local.cluster_mode ? "yes" : "no"
  }

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_elasticache_replication_group" "this" {
  count = local.make_group ? 1 : 0

  replication_group_id = var.name
  description          = "Sluice: locks, jobs, limits"
  engine               = "valkey"
  engine_version       = var.cache.engine_version
  node_type            = var.cache.node_type
  parameter_group_name = aws_elasticache_parameter_group.this[0].name
  port                 = 6379
  tags                 = local.tags

  num_node_groups            = var.cache.shards
  replicas_per_node_group    = var.cache.replicas
  automatic_failover_enabled = var.cache.replicas > 0
  multi_az_enabled           = var.cache.replicas > 0

  subnet_group_name  = aws_elasticache_subnet_group.this[0].name
  security_group_ids = aws_security_group.cache[*].id

  at_rest_encryption_enabled = true
  kms_key_id                 = local.key_arn
  transit_encryption_enabled = true
  transit_encryption_mode    = "required"
  user_group_ids             = [aws_elasticache_user_group.this[0].user_group_id]

  auto_minor_version_upgrade = true
  apply_immediately          = false
  maintenance_window         = var.cache.maintenance_window
  snapshot_retention_limit   = var.cache.snapshot_retention_days
  snapshot_window            = var.cache.snapshot_retention_days > 0 ? var.cache.snapshot_window : null
  final_snapshot_identifier  = var.deletion_protection ? "${var.name}-final" : null

  dynamic "log_delivery_configuration" {
    for_each = toset(["slow-log", "engine-log"])
    content {
      destination      = aws_cloudwatch_log_group.cache[log_delivery_configuration.key].name
      destination_type = "cloudwatch-logs"
      log_format       = "json"
      log_type         = log_delivery_configuration.key
    }
  }

  lifecycle {
    precondition {
      condition     = var.cache.shards == 1 || var.cache.replicas > 0
      error_message = "A cache with several shards needs at least one replica per shard, because cluster mode requires automatic failover."
    }
    precondition {
      condition     = var.attach_vpc
      error_message = "attach_vpc = false requires existing_cache, because a new cache is in a VPC."
    }
  }
}

resource "aws_cloudwatch_log_group" "cache" {
  for_each = local.make_group ? toset(["slow-log", "engine-log"]) : toset([])

  name              = "/aws/vendedlogs/${var.name}/valkey-${each.key}"
  retention_in_days = var.log_retention_days
  kms_key_id        = local.key_arn
  tags              = local.tags
}

resource "aws_elasticache_serverless_cache" "this" {
  count = local.make_serverless ? 1 : 0

  name                 = var.name
  description          = "Sluice: locks, jobs, limits"
  engine               = "valkey"
  major_engine_version = split(".", var.cache.engine_version)[0]
  kms_key_id           = local.key_arn
  user_group_id        = aws_elasticache_user_group.this[0].user_group_id
  subnet_ids           = slice(local.subnet_ids, 0, min(3, length(local.subnet_ids)))
  security_group_ids   = aws_security_group.cache[*].id
  tags                 = local.tags

  daily_snapshot_time      = var.cache.snapshot_retention_days > 0 ? split("-", var.cache.snapshot_window)[0] : null
  snapshot_retention_limit = var.cache.snapshot_retention_days

  # Do not limit the data: at such a limit, a serverless cache evicts keys that have a TTL. It does
  # not support noeviction.
  cache_usage_limits {
    ecpu_per_second {
      maximum = var.cache.max_ecpu_per_second
    }
  }

  lifecycle {
    precondition {
      condition     = var.attach_vpc
      error_message = "attach_vpc = false requires existing_cache, because a new cache is in a VPC."
    }
  }
}

resource "aws_elasticache_user" "functions" {
  count = local.make_user ? 1 : 0

  # IAM authentication requires the ID and the name to be the same.
  user_id       = "${var.name}-functions"
  user_name     = "${var.name}-functions"
  engine        = "valkey"
  access_string = local.access_string
  tags          = local.tags

  authentication_mode {
    type = "iam"
  }
}

resource "aws_elasticache_user_group" "this" {
  count = local.make_user ? 1 : 0

  user_group_id = var.name
  engine        = "valkey"
  user_ids      = [aws_elasticache_user.functions[0].user_id]
  tags          = local.tags
}
