# 35: a full bucket of 25, and the 10 that drip in within the second.
output "worst" {
  value = provider::sluice::worst_case({ algorithm = "token_bucket", limit = 10, window = "1s", burst = 25 })
}
