# Values that are refused when planning, before anything is touched. Each run expects exactly the failure of the named check.

mock_provider "aws" {}

override_data {
  target = data.aws_availability_zones.available
  values = { names = ["eu-central-1a", "eu-central-1b"] }
}

variables {
  packages = { directory = "tests/packages" }
}

run "refuses_a_name_that_resources_cannot_have" {
  command = plan
  variables {
    name = "Sluice_1"
  }
  expect_failures = [var.name]
}

run "refuses_a_queue_name_that_sqs_does_not_take" {
  command = plan
  variables {
    queues = { "orders.eu" = {} }
  }
  expect_failures = [var.queues]
}

run "refuses_more_queues_than_an_environment_holds" {
  command = plan
  variables {
    queues = { for i in range(31) : format("queue-%05d", i) => {} }
  }
  expect_failures = [var.queues]
}

run "refuses_a_consumer_timeout_that_sqs_cannot_hide_a_message_for" {
  command = plan
  variables {
    queues = { orders = { consumer_timeout_seconds = 7201 } }
  }
  expect_failures = [var.queues]
}

run "refuses_a_retention_beyond_that_of_sqs" {
  command = plan
  variables {
    queues = { orders = { retention_seconds = 1209601 } }
  }
  expect_failures = [var.queues]
}

run "refuses_more_shards_than_the_code_takes" {
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

run "refuses_a_processor_that_lambda_has_not" {
  command = plan
  variables {
    architecture = "amd64"
  }
  expect_failures = [var.architecture]
}

run "refuses_a_function_that_is_not_there" {
  command = plan
  variables {
    functions = { locks = {} }
  }
  expect_failures = [var.functions]
}

run "refuses_a_dispatcher_that_ends_before_its_successor_comes" {
  command = plan
  variables {
    functions = { dispatcher = { timeout_seconds = 60 } }
  }
  expect_failures = [var.functions]
}

run "refuses_a_dispatcher_that_cannot_overlap" {
  command = plan
  variables {
    functions = { dispatcher = { reserved_concurrency = 1 } }
  }
  expect_failures = [var.functions]
}

run "refuses_a_timeout_that_api_gateway_does_not_wait_for" {
  command = plan
  variables {
    functions = { lock = { timeout_seconds = 31 } }
  }
  expect_failures = [var.functions]
}

run "refuses_a_front_door_that_is_not_there" {
  command = plan
  variables {
    front_door = "alb"
  }
  expect_failures = [var.front_door]
}

run "refuses_a_throttle_of_nothing" {
  command = plan
  variables {
    throttle = { rate = 0 }
  }
  expect_failures = [var.throttle]
}

run "refuses_a_kind_of_cache_that_is_not_there" {
  command = plan
  variables {
    cache = { kind = "memcached" }
  }
  expect_failures = [var.cache]
}

run "refuses_a_version_that_valkey_has_not" {
  command = plan
  variables {
    cache = { engine_version = "6.2" }
  }
  expect_failures = [var.cache]
}

run "refuses_more_replicas_than_elasticache_takes" {
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

run "refuses_iam_without_what_it_needs" {
  command = plan
  variables {
    existing_cache = { url = "rediss://redis:6379", auth = "iam", cidrs = ["10.0.0.0/8"] }
  }
  expect_failures = [var.existing_cache]
}

run "refuses_a_password_from_nowhere" {
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

run "refuses_an_address_range_that_is_too_small" {
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

run "refuses_a_log_level_that_is_not_there" {
  command = plan
  variables {
    log_level = "trace"
  }
  expect_failures = [var.log_level]
}

run "refuses_a_retention_that_cloudwatch_has_not" {
  command = plan
  variables {
    log_retention_days = 31
  }
  expect_failures = [var.log_retention_days]
}

run "refuses_an_alarm_on_more_memory_than_there_is" {
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

run "refuses_a_cache_made_outside_of_a_vpc" {
  command = plan
  variables {
    attach_vpc = false
  }
  expect_failures = [aws_elasticache_replication_group.this]
}

run "refuses_a_cache_that_the_security_group_keeps_out" {
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
