import {
  to = sluice_limiter_policy.login
  id = "login"
}
