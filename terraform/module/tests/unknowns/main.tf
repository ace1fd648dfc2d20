# A caller that creates the network, the cache, the key and the API in the same apply. The plan must
# succeed although their attributes are still unknown.

resource "terraform_data" "made" {
  input = "made with the rest"
}

module "sluice" {
  source = "../.."

  packages       = { directory = "tests/packages" }
  queues         = { orders = {} }
  encryption_key = { arn = terraform_data.made.id }
  authorizer     = { apis = { shop = terraform_data.made.id }, policy = "shop" }
  alarms         = { actions = [terraform_data.made.id] }

  vpc = {
    id               = terraform_data.made.id
    subnet_ids       = [terraform_data.made.id, "subnet-2"]
    create_endpoints = true
    route_table_ids  = [terraform_data.made.id]
  }

  existing_cache = {
    url            = "rediss://redis.example.internal:6379"
    auth           = "password"
    secret_arn     = terraform_data.made.id
    security_group = { id = terraform_data.made.id }
  }
}
