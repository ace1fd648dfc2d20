# By its name.
terraform import sluice_limiter_policy.login login
