resource "sluice_limiter_policy" "login" {
  name        = "login"
  description = "Limits password guessing: few tries in a row, and few a day"

  # While Redis is unavailable, deny every attempt.
  on_unavailable = "deny"

  rules = [
    { name = "burst", algorithm = "token_bucket", limit = 5, window = "1m", burst = 10 },
    { name = "daily", algorithm = "sliding_window", limit = 50, window = "24h" },
  ]

  overrides = [
    { key = "office", mode = "allow" },
    { key = "bot-*", rules = [{ name = "daily", algorithm = "sliding_window", limit = 1, window = "24h" }] },
  ]
}

locals {
  search = provider::sluice::rate("100/m")
}

# A limit in shadow mode: it decides and counts, but allows every request.
resource "sluice_limiter_policy" "search" {
  name  = "search"
  mode  = "shadow"
  rules = [local.search]

  lifecycle {
    precondition {
      condition     = provider::sluice::worst_case(local.search) <= 250
      error_message = "The search supports 250 requests a minute."
    }
  }
}
