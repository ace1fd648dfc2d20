# Returns 35: a full bucket of 25 tokens, plus the 10 tokens of one second.
output "worst" {
  value = provider::sluice::worst_case({ algorithm = "token_bucket", limit = 10, window = "1s", burst = 25 })
}
