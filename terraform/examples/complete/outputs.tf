output "endpoint" {
  description = "Where locks, jobs and limits are."
  value       = module.sluice.endpoint
}

output "queue_urls" {
  description = "What consumers receive from."
  value       = module.sluice.queue_urls
}
