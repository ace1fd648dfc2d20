# A deployment in an existing VPC, with an existing cache.

provider "aws" {
  region = var.region
}

module "sluice" {
  source = "../../module"

  queues = { orders = {} }

  vpc = {
    id               = var.vpc_id
    subnet_ids       = var.private_subnet_ids
    create_endpoints = true # false if the subnets already have a route to SQS and DynamoDB
    route_table_ids  = var.private_route_table_ids
  }

  # The existing Redis must be 6.2 or later and have maxmemory-policy noeviction. Secrets Manager
  # holds its password. Without this block, the module creates a cache in the VPC.
  existing_cache = {
    url            = "rediss://${var.redis_host}:6379"
    auth           = "password"
    secret_arn     = var.redis_secret_arn
    security_group = { id = var.redis_security_group_id }
  }
}
