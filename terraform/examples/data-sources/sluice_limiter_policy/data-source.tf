data "sluice_limiter_policy" "login" {
  name = "login"
}

output "tries_per_window" {
  value = provider::sluice::worst_case(data.sluice_limiter_policy.login.rules[0])
}
