# The module on LocalStack: the same one, told that AWS is on this machine.

terraform {
  required_version = ">= 1.8.0"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 6.0"
    }
  }
}

provider "aws" {
  region     = "us-east-1"
  access_key = "test"
  secret_key = "test"

  skip_credentials_validation = true
  skip_metadata_api_check     = true
  skip_region_validation      = true

  endpoints {
    cloudwatch = local.localstack
    dynamodb   = local.localstack
    ec2        = local.localstack
    iam        = local.localstack
    kms        = local.localstack
    lambda     = local.localstack
    logs       = local.localstack
    scheduler  = local.localstack
    sqs        = local.localstack
    sts        = local.localstack
  }
}

locals {
  localstack = "http://localhost:4566"
  functions  = ["lock", "enqueue", "dispatcher", "limit"]
}

variable "architecture" {
  description = "This machine's processor, as Docker runs it: arm64 or x86_64."
  type        = string
  default     = "x86_64"
}

module "sluice" {
  source = "../../terraform/module"

  packages     = { directory = "${path.module}/../../dist" }
  architecture = var.architecture
  queues       = { orders = {}, emails = {} }

  # No API Gateway v2 and no ElastiCache in the Hobby plan: function URLs, which send the same payload, and the Valkey beside it.
  front_door     = "function_url"
  attach_vpc     = false
  existing_cache = { url = "redis://valkey:6379" }

  # An account on LocalStack has 1000 instances in name only, and nobody is woken by its alarms.
  functions           = { for name in local.functions : name => { reserved_concurrency = -1 } }
  tracing             = false
  alarms              = { enabled = false }
  dashboard           = false
  deletion_protection = false
}

output "endpoints" {
  description = "Each function's URL."
  value       = module.sluice.endpoints
}

output "queue_urls" {
  description = "The SQS queues."
  value       = module.sluice.queue_urls
}
