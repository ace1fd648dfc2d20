# The ID is the name of the policy.
terraform import sluice_limiter_policy.login login
