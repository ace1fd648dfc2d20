terraform {
  required_version = ">= 1.8.0"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 6.0"
    }
    sluice = {
      source  = "sluicehq/sluice"
      version = ">= 0.1.0"
    }
  }
}
