resource "sluice_limiter_policy" "search" {
  name = "search"
  rules = [
    provider::sluice::rate("100/m"),
    merge(provider::sluice::rate("1000/d"), { algorithm = "sliding_window" }),
  ]
}
