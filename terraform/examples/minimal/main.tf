terraform {
  required_version = ">= 1.8.0"
  required_providers { aws = { source = "hashicorp/aws", version = "~> 6.0" } }
}

module "sluice" {
  source = "../../module"
  queues = { orders = {} }
}

output "endpoint" {
  description = "Where locks, jobs and limits are."
  value       = module.sluice.endpoint
}
