# Invalid values, which the plan must reject. Each run expects exactly the named variable or
# resource to report the error.

mock_provider "aws" {}

override_data {
  target = data.aws_availability_zones.available
  values = { names = ["eu-central-1a", "eu-central-1b"] }
}

variables {
  packages = { directory = "tests/packages" }
}

run "refuses_an_invalid_name" {
  command = plan
  variables {
    name = "Sluice_1"
  }
  expect_failures = [var.name]
}

run "refuses_an_invalid_queue_name" {
  command = plan
  variables {
    queues = { "orders.eu" = {} }
  }
  expect_failures = [var.queues]
}

run "refuses_more_queues_than_fit_into_the_environment" {
  command = plan
  variables {
    queues = { for i in range(31) : format("queue-%05d", i) => {} }
  }
  expect_failures = [var.queues]
}

run "refuses_a_consumer_timeout_above_the_limit_of_sqs" {
  command = plan
  variables {
    queues = { orders = { consumer_timeout_seconds = 7201 } }
  }
  expect_failures = [var.queues]
}

run "refuses_a_retention_above_the_limit_of_sqs" {
  command = plan
  variables {
    queues = { orders = { retention_seconds = 1209601 } }
  }
  expect_failures = [var.queues]
}

run "refuses_more_shards_than_the_code_accepts" {
  command = plan
  variables {
    queue_shards = 257
  }
  expect_failures = [var.queue_shards]
}

run "refuses_a_dedup_window_that_the_code_refuses" {
  command = plan
  variables {
    dedup_window_ms = 999
  }
  expect_failures = [var.dedup_window_ms]
}

run "refuses_a_dead_retention_that_the_code_refuses" {
  command = plan
  variables {
    dead_retention_ms = 31622400001
  }
  expect_failures = [var.dead_retention_ms]
}

run "refuses_an_unknown_architecture" {
  command = plan
  variables {
    architecture = "amd64"
  }
  expect_failures = [var.architecture]
}

run "refuses_an_unknown_function" {
  command = plan
  variables {
    functions = { locks = {} }
  }
  expect_failures = [var.functions]
}

run "refuses_a_dispatcher_timeout_without_overlap" {
  command = plan
  variables {
    functions = { dispatcher = { timeout_seconds = 60 } }
  }
  expect_failures = [var.functions]
}

run "refuses_a_dispatcher_concurrency_without_overlap" {
  command = plan
  variables {
    functions = { dispatcher = { reserved_concurrency = 1 } }
  }
  expect_failures = [var.functions]
}

run "refuses_a_timeout_above_that_of_api_gateway" {
  command = plan
  variables {
    functions = { lock = { timeout_seconds = 31 } }
  }
  expect_failures = [var.functions]
}

run "refuses_an_unknown_front_door" {
  command = plan
  variables {
    front_door = "alb"
  }
  expect_failures = [var.front_door]
}

run "refuses_a_throttle_of_0" {
  command = plan
  variables {
    throttle = { rate = 0 }
  }
  expect_failures = [var.throttle]
}

run "refuses_an_unknown_kind_of_cache" {
  command = plan
  variables {
    cache = { kind = "memcached" }
  }
  expect_failures = [var.cache]
}

run "refuses_an_unknown_version_of_valkey" {
  command = plan
  variables {
    cache = { engine_version = "6.2" }
  }
  expect_failures = [var.cache]
}

run "refuses_more_replicas_than_elasticache_accepts" {
  command = plan
  variables {
    cache = { replicas = 6 }
  }
  expect_failures = [var.cache]
}

run "refuses_a_password_in_the_url" {
  command = plan
  variables {
    existing_cache = { url = "rediss://user:secret@redis:6379", cidrs = ["10.0.0.0/8"] }
  }
  expect_failures = [var.existing_cache]
}

run "refuses_iam_without_a_user" {
  command = plan
  variables {
    existing_cache = { url = "rediss://redis:6379", auth = "iam", cidrs = ["10.0.0.0/8"] }
  }
  expect_failures = [var.existing_cache]
}

run "refuses_a_password_without_a_secret" {
  command = plan
  variables {
    existing_cache = { url = "rediss://redis:6379", auth = "password", cidrs = ["10.0.0.0/8"] }
  }
  expect_failures = [var.existing_cache]
}

run "refuses_a_quorum_of_two" {
  command = plan
  variables {
    quorum_nodes = 2
  }
  expect_failures = [var.quorum_nodes]
}

run "refuses_a_vpc_without_subnets" {
  command = plan
  variables {
    vpc = { id = "vpc-1", subnet_ids = [] }
  }
  expect_failures = [var.vpc]
}

run "refuses_a_small_address_range" {
  command = plan
  variables {
    vpc_cidr = "10.0.0.0/28"
  }
  expect_failures = [var.vpc_cidr]
}

run "refuses_one_availability_zone" {
  command = plan
  variables {
    availability_zones = ["eu-central-1a"]
  }
  expect_failures = [var.availability_zones]
}

run "refuses_an_unknown_log_level" {
  command = plan
  variables {
    log_level = "trace"
  }
  expect_failures = [var.log_level]
}

run "refuses_a_retention_that_cloudwatch_does_not_support" {
  command = plan
  variables {
    log_retention_days = 31
  }
  expect_failures = [var.log_retention_days]
}

run "refuses_an_alarm_above_100_percent_of_memory" {
  command = plan
  variables {
    alarms = { memory_percent = 100 }
  }
  expect_failures = [var.alarms]
}

run "refuses_shards_without_a_replica" {
  command = plan
  variables {
    cache = { shards = 2, replicas = 0 }
  }
  expect_failures = [aws_elasticache_replication_group.this]
}

run "refuses_a_new_cache_without_a_vpc" {
  command = plan
  variables {
    attach_vpc = false
  }
  expect_failures = [aws_elasticache_replication_group.this]
}

run "refuses_an_existing_cache_without_a_security_group_or_addresses" {
  command = plan
  variables {
    existing_cache = { url = "rediss://redis:6379" }
  }
  expect_failures = [aws_security_group.functions]
}

run "refuses_endpoints_without_a_route_table" {
  command = plan
  variables {
    vpc = { id = "vpc-1", subnet_ids = ["subnet-1"], create_endpoints = true }
  }
  expect_failures = [aws_vpc_endpoint.dynamodb]
}
