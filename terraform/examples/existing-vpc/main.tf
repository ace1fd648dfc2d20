# In a VPC that is there already, on a cache that is there already.

provider "aws" {
  region = var.region
}

module "sluice" {
  source = "../../module"

  queues = { orders = {} }

  vpc = {
    id               = var.vpc_id
    subnet_ids       = var.private_subnet_ids
    create_endpoints = true # or false, when the subnets reach SQS and DynamoDB already
    route_table_ids  = var.private_route_table_ids
  }

  # A Redis 6.2 or later with maxmemory-policy noeviction, whose password is in Secrets Manager. Leave this out, and a cache is made in the VPC.
  existing_cache = {
    url            = "rediss://${var.redis_host}:6379"
    auth           = "password"
    secret_arn     = var.redis_secret_arn
    security_group = { id = var.redis_security_group_id }
  }
}
