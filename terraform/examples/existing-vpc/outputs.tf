output "endpoint" {
  description = "The URL of the API."
  value       = module.sluice.endpoint
}

output "queue_urls" {
  description = "The URLs of the queues from which consumers receive."
  value       = module.sluice.queue_urls
}
