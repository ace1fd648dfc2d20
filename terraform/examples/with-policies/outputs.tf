output "endpoint" {
  description = "Where locks, jobs and limits are."
  value       = module.sluice.endpoint
}

output "authorizer_id" {
  description = "What the shop's routes name as their authorizer."
  value       = module.sluice.authorizer_ids["shop"]
}
