terraform {
  required_version = ">= 1.8.0"
  required_providers { aws = { source = "hashicorp/aws", version = "~> 6.0" } } # tflint-ignore: terraform_unused_required_providers
}

module "sluice" {
  source = "../../module"
  queues = { orders = {} }
}

output "endpoint" {
  description = "The URL of the API."
  value       = module.sluice.endpoint
}
