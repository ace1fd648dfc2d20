output "endpoint" {
  description = "The URL of the API."
  value       = module.sluice.endpoint
}

output "authorizer_id" {
  description = "The authorizer for the routes of the shop."
  value       = module.sluice.authorizer_ids["shop"]
}
