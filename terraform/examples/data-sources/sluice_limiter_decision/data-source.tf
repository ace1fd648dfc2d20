# A check that warns if the limit of the key "shop" is exhausted. The data source charges nothing.
data "sluice_limiter_decision" "deploys" {
  policy = "deploys"
  key    = "shop"
}

check "deploy_is_allowed" {
  assert {
    condition     = data.sluice_limiter_decision.deploys.allowed
    error_message = "The limit of deploys is exhausted; retry in ${data.sluice_limiter_decision.deploys.retry_after_ms} ms."
  }
}
