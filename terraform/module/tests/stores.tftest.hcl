# Tables, caches and the network.

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
  target = aws_elasticache_replication_group.this
  values = {
    primary_endpoint_address       = "master.sluice.abc123.euc1.cache.amazonaws.com"
    configuration_endpoint_address = "clustercfg.sluice.abc123.euc1.cache.amazonaws.com"
  }
}

override_resource {
  target = aws_elasticache_serverless_cache.this
  values = {
    arn      = "arn:aws:elasticache:eu-central-1:111122223333:serverlesscache:sluice"
    endpoint = [{ address = "sluice-abc123.serverless.euc1.cache.amazonaws.com", port = 6379 }]
  }
}

override_resource {
  target = aws_elasticache_user.functions
  values = { arn = "arn:aws:elasticache:eu-central-1:111122223333:user:sluice-functions" }
}

override_resource {
  target = module.dispatcher.aws_iam_role.this
  values = { arn = "arn:aws:iam::111122223333:role/sluice-dispatcher" }
}

override_resource {
  target = aws_security_group.functions
  values = { id = "sg-functions" }
}

override_resource {
  target = aws_security_group.cache
  values = { id = "sg-cache" }
}

override_resource {
  target = aws_security_group.endpoints
  values = { id = "sg-endpoints" }
}

override_resource {
  target = aws_vpc.this
  values = { id = "vpc-made" }
}

variables {
  packages = { directory = "tests/packages" }
  queues   = { orders = {} }
}

run "tables_are_on_demand_encrypted_recoverable_and_protected" {
  assert {
    condition = alltrue([for t in [aws_dynamodb_table.policies, aws_dynamodb_table.outbox, aws_dynamodb_table.locks] :
      t.billing_mode == "PAY_PER_REQUEST" && t.point_in_time_recovery[0].enabled && t.deletion_protection_enabled
      && t.server_side_encryption[0].enabled && t.server_side_encryption[0].kms_key_arn == "arn:aws:kms:eu-central-1:111122223333:key/sluice"
    ])
    error_message = "Each table must be on demand, encrypted with the key, recoverable to a point in time and protected against deletion."
  }
  assert {
    condition     = [for t in [aws_dynamodb_table.outbox, aws_dynamodb_table.locks] : t.ttl[0].attribute_name] == ["ttl", "ttl"] && length(aws_dynamodb_table.policies.ttl) == 0
    error_message = "The tables of jobs and locks must have a TTL, and the table of policies must not."
  }
}

run "the_cache_fails_over_encrypts_and_evicts_nothing" {
  assert {
    condition     = aws_elasticache_replication_group.this[0].engine == "valkey" && aws_elasticache_replication_group.this[0].engine_version == "8.1"
    error_message = "The engine and its version must be explicit."
  }
  assert {
    condition     = aws_elasticache_replication_group.this[0].automatic_failover_enabled && aws_elasticache_replication_group.this[0].multi_az_enabled && aws_elasticache_replication_group.this[0].replicas_per_node_group == 1
    error_message = "The cache must fail over to another availability zone."
  }
  assert {
    condition     = aws_elasticache_replication_group.this[0].transit_encryption_enabled && aws_elasticache_replication_group.this[0].transit_encryption_mode == "required" && aws_elasticache_replication_group.this[0].kms_key_id == "arn:aws:kms:eu-central-1:111122223333:key/sluice"
    error_message = "The cache must be encrypted at rest and in transit."
  }
  assert {
    condition     = { for p in aws_elasticache_parameter_group.this[0].parameter : p.name => p.value } == { "maxmemory-policy" = "noeviction", "cluster-enabled" = "no" } && aws_elasticache_parameter_group.this[0].family == "valkey8"
    error_message = "The cache must evict nothing."
  }
  assert {
    condition     = aws_elasticache_user.functions[0].authentication_mode[0].type == "iam" && aws_elasticache_user.functions[0].user_id == aws_elasticache_user.functions[0].user_name && aws_elasticache_user_group.this[0].user_ids == toset(["sluice-functions"])
    error_message = "The functions must authenticate with IAM as the only user of the group."
  }
  assert {
    condition     = length(aws_elasticache_replication_group.this[0].log_delivery_configuration) == 2 && aws_elasticache_replication_group.this[0].snapshot_retention_limit == 7
    error_message = "The cache must write logs and have snapshots."
  }
}

run "several_shards_turn_on_cluster_mode" {
  variables {
    cache = { shards = 3, replicas = 2 }
  }
  assert {
    condition     = output.redis == { url = "rediss://clustercfg.sluice.abc123.euc1.cache.amazonaws.com:6379", cluster = true, auth = "iam" }
    error_message = "The functions must use the cluster protocol and the configuration endpoint: ${jsonencode(output.redis)}"
  }
  assert {
    condition     = { for p in aws_elasticache_parameter_group.this[0].parameter : p.name => p.value }["cluster-enabled"] == "yes" && aws_elasticache_replication_group.this[0].num_node_groups == 3
    error_message = "The group must run in cluster mode."
  }
}

run "a_serverless_cache_replaces_the_group" {
  variables {
    cache = { kind = "serverless" }
  }
  assert {
    condition     = output.redis == { url = "rediss://sluice-abc123.serverless.euc1.cache.amazonaws.com:6379", cluster = true, auth = "iam" }
    error_message = "The functions must connect to the serverless cache: ${jsonencode(output.redis)}"
  }
  assert {
    condition     = module.limit.wiring.function.environment[0].variables["SLUICE_REDIS_SERVERLESS"] == "true" && module.limit.wiring.function.environment[0].variables["SLUICE_REDIS_IAM_RESOURCE"] == "sluice"
    error_message = "The environment must mark the cache as serverless, because the IAM tokens contain this mark."
  }
  assert {
    condition     = length(aws_elasticache_replication_group.this) == 0 && length(aws_elasticache_serverless_cache.this[0].cache_usage_limits[0].data_storage) == 0
    error_message = "A serverless cache must have no data limit, because it evicts keys at the limit."
  }
  assert {
    condition     = { for k, r in aws_vpc_security_group_ingress_rule.cache_from_functions : k => r.from_port } == { primary = 6379, reader = 6380 }
    error_message = "The security group must permit the reader port of a serverless cache."
  }
  assert {
    condition     = [for s in module.lock.wiring.policy.Statement : s.Resource if s.Sid == "ConnectToCache"] == [["arn:aws:elasticache:eu-central-1:111122223333:serverlesscache:sluice", "arn:aws:elasticache:eu-central-1:111122223333:user:sluice-functions"]]
    error_message = "The functions must be permitted to connect to the cache."
  }
}

run "an_existing_cache_is_used_as_it_is" {
  variables {
    vpc = { id = "vpc-1", subnet_ids = ["subnet-1", "subnet-2"] }
    existing_cache = {
      url            = "rediss://redis.internal:6379"
      auth           = "password"
      secret_arn     = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:redis"
      security_group = { id = "sg-redis" }
    }
  }
  assert {
    condition     = length(aws_elasticache_replication_group.this) + length(aws_elasticache_serverless_cache.this) + length(aws_elasticache_user.functions) == 0
    error_message = "There must be no new cache."
  }
  assert {
    condition     = module.lock.wiring.function.environment[0].variables["SLUICE_REDIS_AUTH"] == "password" && module.lock.wiring.function.environment[0].variables["SLUICE_REDIS_SECRET_ARN"] == "arn:aws:secretsmanager:eu-central-1:111122223333:secret:redis"
    error_message = "The environment must contain the ARN of the secret."
  }
  assert {
    condition     = [for s in module.limit.wiring.policy.Statement : s.Action if s.Sid == "ReadPassword"] == [["secretsmanager:GetSecretValue"]] && length([for s in module.limit.wiring.policy.Statement : s if s.Sid == "ConnectToCache"]) == 0
    error_message = "The functions must be permitted to read the secret, and must have no permission for ElastiCache."
  }
  assert {
    condition     = aws_vpc_security_group_ingress_rule.existing_cache_from_functions[0].security_group_id == "sg-redis" && aws_vpc_security_group_egress_rule.functions_to_existing_cache[0].referenced_security_group_id == "sg-redis"
    error_message = "The security group of the cache must admit the functions."
  }
}

run "a_cache_without_a_vpc_needs_no_network" {
  variables {
    attach_vpc     = false
    existing_cache = { url = "redis://valkey:6379" }
  }
  assert {
    condition     = length(aws_vpc.this) + length(aws_security_group.functions) + length(aws_vpc_endpoint.interface) + length(aws_vpc_endpoint.dynamodb) == 0 && length(module.lock.wiring.function.vpc_config) == 0
    error_message = "There must be no new network."
  }
  assert {
    condition     = !contains([for s in module.lock.wiring.policy.Statement : s.Sid], "NetworkInterfaces")
    error_message = "Without a VPC, a role must have no permissions for network interfaces."
  }
}

run "the_vpc_is_private_and_has_only_the_required_endpoints" {
  assert {
    condition     = { for zone, s in aws_subnet.private : zone => s.cidr_block } == { "eu-central-1a" = "10.64.0.0/24", "eu-central-1b" = "10.64.1.0/24" }
    error_message = "There must be a private subnet in each of two zones."
  }
  assert {
    condition     = toset(keys(aws_vpc_endpoint.interface)) == toset(["sqs"]) && aws_vpc_endpoint.interface["sqs"].private_dns_enabled && aws_vpc_endpoint.dynamodb[0].vpc_endpoint_type == "Gateway"
    error_message = "There must be endpoints for SQS and DynamoDB, and no others."
  }
  assert {
    condition     = jsondecode(aws_vpc_endpoint.interface["sqs"].policy).Statement[0].Condition == { ArnEquals = { "aws:PrincipalArn" = "arn:aws:iam::111122223333:role/sluice-dispatcher" } } && jsondecode(aws_vpc_endpoint.interface["sqs"].policy).Statement[0].Action == ["sqs:SendMessage"]
    error_message = "Only the dispatcher may use the SQS endpoint, and only to send messages: ${aws_vpc_endpoint.interface["sqs"].policy}"
  }
  assert {
    condition     = length(jsondecode(aws_vpc_endpoint.dynamodb[0].policy).Statement[0].Resource) == 3 && !contains(jsondecode(aws_vpc_endpoint.dynamodb[0].policy).Statement[0].Action, "dynamodb:*")
    error_message = "The DynamoDB endpoint must permit access only to the three tables."
  }
  assert {
    condition = alltrue([for r in concat(
      values(aws_vpc_security_group_ingress_rule.cache_from_functions), values(aws_vpc_security_group_egress_rule.functions_to_cache),
      aws_vpc_security_group_ingress_rule.endpoints_from_functions, aws_vpc_security_group_egress_rule.functions_to_endpoints,
      ) : r.cidr_ipv4 == null && r.referenced_security_group_id != null && r.description != null
    ])
    error_message = "Rules must name security groups instead of addresses, and have a description."
  }
  assert {
    condition     = aws_vpc_security_group_ingress_rule.cache_from_functions["primary"].security_group_id == "sg-cache" && aws_vpc_security_group_ingress_rule.cache_from_functions["primary"].referenced_security_group_id == "sg-functions" && length(aws_vpc_security_group_egress_rule.functions_to_aws) == 0
    error_message = "Only the functions may reach the cache, and they must not reach the internet."
  }
  assert {
    condition     = length(aws_flow_log.this) == 1 && length(aws_default_security_group.this) == 1
    error_message = "The VPC must have flow logs, and its default security group must have no rules."
  }
}

run "an_existing_vpc_gets_only_security_groups" {
  variables {
    vpc = { id = "vpc-1", subnet_ids = ["subnet-1", "subnet-2"] }
  }
  assert {
    condition     = length(aws_vpc.this) + length(aws_subnet.private) + length(aws_vpc_endpoint.interface) + length(aws_flow_log.this) == 0
    error_message = "The module must create no network resources other than security groups."
  }
  assert {
    condition     = module.lock.wiring.function.vpc_config[0].subnet_ids == toset(["subnet-1", "subnet-2"]) && aws_security_group.functions[0].vpc_id == "vpc-1" && aws_elasticache_subnet_group.this[0].subnet_ids == toset(["subnet-1", "subnet-2"])
    error_message = "The functions and the cache must be in the given subnets."
  }
  assert {
    condition     = aws_vpc_security_group_egress_rule.functions_to_aws[0].from_port == 443 && aws_vpc_security_group_egress_rule.functions_to_aws[0].to_port == 443
    error_message = "The functions may call AWS APIs only with HTTPS."
  }
}

run "an_existing_vpc_gets_endpoints_on_request" {
  variables {
    vpc = { id = "vpc-1", subnet_ids = ["subnet-1"], create_endpoints = true, route_table_ids = ["rtb-1"] }
  }
  assert {
    condition     = aws_vpc_endpoint.dynamodb[0].route_table_ids == toset(["rtb-1"]) && aws_vpc_endpoint.interface["sqs"].vpc_id == "vpc-1"
    error_message = "The endpoints must be in the given VPC."
  }
}

run "quorum_nodes_are_single_and_in_different_zones" {
  variables {
    quorum_nodes       = 3
    availability_zones = ["eu-central-1a", "eu-central-1b", "eu-central-1c"]
  }
  assert {
    condition = alltrue([for n in aws_elasticache_replication_group.quorum :
      n.num_cache_clusters == 1 && !n.automatic_failover_enabled && n.transit_encryption_enabled && n.at_rest_encryption_enabled == "true"
    ]) && length(aws_elasticache_replication_group.quorum) == 3
    error_message = "A quorum node must have no replica, because a failover could lose a lock."
  }
  assert {
    condition     = toset([for n in aws_elasticache_replication_group.quorum : n.preferred_cache_cluster_azs[0]]) == toset(["eu-central-1a", "eu-central-1b", "eu-central-1c"])
    error_message = "Each node must be in a different availability zone."
  }
  assert {
    condition     = length(toset([for n in aws_elasticache_replication_group.quorum : n.maintenance_window])) == 3
    error_message = "No two nodes may have the same maintenance window."
  }
  assert {
    condition     = { for p in aws_elasticache_parameter_group.quorum[0].parameter : p.name => p.value } == { "maxmemory-policy" = "noeviction" }
    error_message = "A quorum node must evict nothing."
  }
}

run "an_existing_key_encrypts_everything" {
  variables {
    encryption_key = { arn = "arn:aws:kms:eu-central-1:111122223333:key/yours" }
  }
  assert {
    condition     = length(aws_kms_key.this) == 0 && aws_dynamodb_table.outbox.server_side_encryption[0].kms_key_arn == "arn:aws:kms:eu-central-1:111122223333:key/yours" && module.lock.wiring.function.kms_key_arn == "arn:aws:kms:eu-central-1:111122223333:key/yours"
    error_message = "The module must use the given key."
  }
}
