output "endpoint" {
  description = "The URL of the API."
  value       = module.sluice.endpoint
}

output "authorizer_id" {
  description = "The ID of the authorizer for the shop's routes."
  value       = module.sluice.authorizer_ids["shop"]
}
