# Applies the module to LocalStack: all endpoints of the AWS provider are on this machine.

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
  description = "Processor architecture of this machine's Docker: arm64 or x86_64."
  type        = string
  default     = "x86_64"
}

module "sluice" {
  source = "../../terraform/module"

  packages     = { directory = "${path.module}/../../dist" }
  architecture = var.architecture
  queues       = { orders = {}, emails = {} }

  # LocalStack's Hobby plan includes neither API Gateway v2 nor ElastiCache. Use function URLs,
  # which have the same payload format, and the Valkey container.
  front_door     = "function_url"
  attach_vpc     = false
  existing_cache = { url = "redis://valkey:6379" }

  # LocalStack has no concurrency quota to reserve from, and nobody watches its alarms.
  functions           = { for name in local.functions : name => { reserved_concurrency = -1 } }
  tracing             = false
  alarms              = { enabled = false }
  dashboard           = false
  deletion_protection = false
}

output "endpoints" {
  description = "URLs of the functions."
  value       = module.sluice.endpoints
}

output "queue_urls" {
  description = "URLs of the SQS queues."
  value       = module.sluice.queue_urls
}
