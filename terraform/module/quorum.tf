# Independent caches for locks with consistency = "quorum". Each cache is a single node without a
# replica, so that no failover can lose a lock.

locals {
  quorum = { for i in range(var.quorum_nodes) : tostring(i + 1) => element(local.quorum_zones, i) }
}

resource "aws_elasticache_parameter_group" "quorum" {
  count = var.quorum_nodes > 0 ? 1 : 0

  name        = "${var.name}-quorum-${local.parameter_family}"
  family      = local.parameter_family
  description = "Sluice quorum: no eviction"
  tags        = local.tags

  parameter {
    name  = "maxmemory-policy"
    value = "noeviction"
  }

  lifecycle {
    create_before_destroy = true
  }
}

# Each quorum node is a replication group with one node, because aws_elasticache_cluster does not
# support Valkey.
resource "aws_elasticache_replication_group" "quorum" {
  for_each = local.quorum

  replication_group_id        = "${var.name}-quorum-${each.key}"
  description                 = "Sluice: quorum node ${each.key} of ${var.quorum_nodes}"
  engine                      = "valkey"
  engine_version              = var.cache.engine_version
  node_type                   = var.quorum_node_type
  parameter_group_name        = aws_elasticache_parameter_group.quorum[0].name
  port                        = 6379
  num_cache_clusters          = 1
  automatic_failover_enabled  = false
  multi_az_enabled            = false
  preferred_cache_cluster_azs = each.value == "" ? null : [each.value]
  tags                        = local.tags

  subnet_group_name  = aws_elasticache_subnet_group.this[0].name
  security_group_ids = aws_security_group.cache[*].id

  at_rest_encryption_enabled = true
  kms_key_id                 = local.key_arn
  transit_encryption_enabled = true
  transit_encryption_mode    = "required"
  user_group_ids             = [aws_elasticache_user_group.this[0].user_group_id]

  auto_minor_version_upgrade = true
  # Leases last for seconds; a restored snapshot would contain only expired locks.
  snapshot_retention_limit = 0

  # Each node has its maintenance window on a different day, so that AWS maintains one node at a
  # time.
  maintenance_window = "${element(["mon", "tue", "wed", "thu", "fri"], tonumber(each.key) - 1)}:04:30-${element(["mon", "tue", "wed", "thu", "fri"], tonumber(each.key) - 1)}:05:30"

  lifecycle {
    precondition {
      condition     = var.attach_vpc
      error_message = "quorum_nodes requires a VPC; set attach_vpc = true."
    }
  }
}
