import {
  to = sluice_limiter_policy.login
  identity = {
    name = "login"
  }
}
