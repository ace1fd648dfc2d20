# Plans the example unchanged, without an AWS account.

mock_provider "aws" {}

variables {
  vpc_id                  = "vpc-1"
  private_subnet_ids      = ["subnet-1", "subnet-2"]
  private_route_table_ids = ["rtb-1"]
  redis_host              = "redis.example.internal"
  redis_secret_arn        = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:redis-AbCdEf"
  redis_security_group_id = "sg-1"
}

run "uses_the_existing_network_and_cache" {
  assert {
    condition     = module.sluice.vpc_id == "vpc-1" && module.sluice.redis == { url = "rediss://redis.example.internal:6379", cluster = false, auth = "password" }
    error_message = "The module must use the given network and cache."
  }
}
