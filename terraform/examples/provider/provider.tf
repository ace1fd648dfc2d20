terraform {
  required_providers {
    sluice = {
      source = "sluicehq/sluice"
    }
  }
}

# Signs with the credentials that the AWS SDK finds. The endpoint is an output of the module.
provider "sluice" {
  endpoint = "https://abc123.execute-api.eu-central-1.amazonaws.com"
}

# A deployment in another account, with a custom domain.
provider "sluice" {
  alias    = "production"
  endpoint = "https://limits.example.com"
  region   = "eu-west-1"

  assume_role = {
    role_arn     = "arn:aws:iam::123456789012:role/limits"
    session_name = "deploy"
  }
}

# The local stack (make up).
provider "sluice" {
  alias    = "local"
  endpoint = "http://127.0.0.1:4000"
  auth     = "none"
}
