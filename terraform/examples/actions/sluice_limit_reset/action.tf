# terraform apply -invoke=action.sluice_limit_reset.office
action "sluice_limit_reset" "office" {
  config {
    policy = "login"
    key    = "office"
  }
}
