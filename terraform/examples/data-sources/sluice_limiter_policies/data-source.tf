data "sluice_limiter_policies" "shop" {
  name_prefix = "shop-"
}

output "not_enforced" {
  value = [for p in data.sluice_limiter_policies.shop.policies : p.name if p.mode != "enforce"]
}
