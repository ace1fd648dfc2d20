# The deployment and its limits in one configuration: a new limit is a pull request.

provider "aws" {
  region = var.region
}

module "sluice" {
  source = "../../module"

  queues = { orders = {} }

  # The shop's API asks the function limit before each of its requests.
  authorizer = { apis = { shop = aws_apigatewayv2_api.shop.id }, policy = "shop-per-key", key = "$request.header.x-api-key" }
}

# The provider signs with the same credentials as the provider aws. Whoever applies needs module.sluice.caller_policy. On the first apply the endpoint
# is known only after the API is made; the policies are then made last.
provider "sluice" {
  endpoint = module.sluice.endpoint
  region   = var.region
}

resource "sluice_limiter_policy" "login" {
  name        = "login"
  description = "Guessing passwords: few tries at once, few a day"
  # Without Redis nobody guesses.
  on_unavailable = "deny"

  rules = [
    { name = "burst", algorithm = "token_bucket", limit = 5, window = "1m" },
    { name = "daily", algorithm = "sliding_window", limit = 50, window = "24h" },
  ]
}

resource "sluice_limiter_policy" "shop_per_key" {
  name        = "shop-per-key"
  description = "The shop's API, for each API key"

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
