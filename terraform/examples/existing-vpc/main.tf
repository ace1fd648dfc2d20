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
    create_endpoints = true # or false, if the subnets have another route to SQS and DynamoDB
    route_table_ids  = var.private_route_table_ids
  }

  # Redis 6.2 or later with maxmemory-policy noeviction, and a password in Secrets Manager. Without
  # this block, the module creates a cache in the VPC.
  existing_cache = {
    url            = "rediss://${var.redis_host}:6379"
    auth           = "password"
    secret_arn     = var.redis_secret_arn
    security_group = { id = var.redis_security_group_id }
  }
}
