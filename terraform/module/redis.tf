# The functions' connection to Redis: the existing cache, the serverless cache or the replication
# group.

locals {
  redis = (
    var.existing_cache != null ? {
      url          = var.existing_cache.url
      cluster      = var.existing_cache.cluster
      auth         = var.existing_cache.auth
      user         = var.existing_cache.user
      iam_resource = var.existing_cache.iam_resource
      serverless   = var.existing_cache.serverless
      secret_arn   = var.existing_cache.secret_arn
    }
    : local.make_serverless ? {
      url          = "rediss://${aws_elasticache_serverless_cache.this[0].endpoint[0].address}:${aws_elasticache_serverless_cache.this[0].endpoint[0].port}"
      cluster      = true
      auth         = "iam"
      user         = aws_elasticache_user.functions[0].user_name
      iam_resource = aws_elasticache_serverless_cache.this[0].name
      serverless   = true
      secret_arn   = null
    }
    : {
      url = "rediss://${local.cluster_mode
        ? aws_elasticache_replication_group.this[0].configuration_endpoint_address
      : aws_elasticache_replication_group.this[0].primary_endpoint_address}:6379"
      cluster      = local.cluster_mode
      auth         = "iam"
      user         = aws_elasticache_user.functions[0].user_name
      iam_resource = aws_elasticache_replication_group.this[0].replication_group_id
      serverless   = false
      secret_arn   = null
    }
  )

  # The URLs must have the same order as the cache names in SLUICE_LOCK_IAM_RESOURCES. An IAM token
  # is valid for one cache, so the function creates the token for a URL from the cache name at the
  # same position.
  quorum_urls = [for node in aws_elasticache_replication_group.quorum : "rediss://${node.primary_endpoint_address}:6379"]
}
