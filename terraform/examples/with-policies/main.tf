# A deployment and its limiter policies in one configuration.

provider "aws" {
  region = var.region
}

module "sluice" {
  source = "../../module"

  queues = { orders = {} }

  # API Gateway calls the function "limit" before each request to the shop's API.
  authorizer = { apis = { shop = aws_apigatewayv2_api.shop.id }, policy = "shop-per-key", key = "$request.header.x-api-key" }
}

# The provider signs its requests with the AWS credentials of the environment. They need the
# permissions in module.sluice.caller_policy. On the first apply, Terraform creates the API first
# and then the policies, because the endpoint is unknown until the API exists.
provider "sluice" {
  endpoint = module.sluice.endpoint
  region   = var.region
}

resource "sluice_limiter_policy" "login" {
  name        = "login"
  description = "Limits password guessing: few tries in a row, and few a day"
  # While Redis is unavailable, the limiter denies all logins.
  on_unavailable = "deny"

  rules = [
    { name = "burst", algorithm = "token_bucket", limit = 5, window = "1m" },
    { name = "daily", algorithm = "sliding_window", limit = 50, window = "24h" },
  ]
}

resource "sluice_limiter_policy" "shop_per_key" {
  name        = "shop-per-key"
  description = "Limits each API key of the shop"

  rules = [
    { name = "steady", algorithm = "gcra", limit = 100, window = "1s", burst = 200 },
    { name = "hourly", algorithm = "sliding_window_counter", limit = 100000, window = "1h" },
  ]

  overrides = [
    { key = "internal-*", mode = "allow" },
    { key = "partner-gold", rules = [{ name = "steady", algorithm = "gcra", limit = 1000, window = "1s", burst = 2000 }] },
  ]
}

resource "aws_apigatewayv2_api" "shop" {
  name          = "shop"
  protocol_type = "HTTP"
}
