# terraform query -generate-config-out=found.tf
list "sluice_limiter_policy" "by_hand" {
  provider = sluice

  config {
    name_prefix = "shop-"
  }
}
