# A pipeline stops when the limit of its own key is used up. Nothing is charged.
data "sluice_limiter_decision" "deploys" {
  policy = "deploys"
  key    = "shop"
}

check "deploys_are_left" {
  assert {
    condition     = data.sluice_limiter_decision.deploys.allowed
    error_message = "No deploy is left for now: ${data.sluice_limiter_decision.deploys.retry_after_ms} ms to go."
  }
}
