# Logs, traces, alarms and the dashboard.

variable "log_level" {
  description = "The minimum level that the functions log: `debug`, `info`, `warn` or `error`."
  type        = string
  default     = "info"

  validation {
    condition     = contains(["debug", "info", "warn", "error"], var.log_level)
    error_message = "log_level must be debug, info, warn or error."
  }
}

variable "log_retention_days" {
  description = "The number of days that CloudWatch keeps the logs."
  type        = number
  default     = 30

  validation {
    condition     = contains([1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653], var.log_retention_days)
    error_message = "log_retention_days must be a number of days that CloudWatch supports: 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, …"
  }
}

variable "flow_logs" {
  description = "Whether the new VPC writes flow logs to CloudWatch."
  type        = bool
  default     = true
}

variable "tracing" {
  description = "Whether the functions send traces to X-Ray. The functions always propagate the trace context of callers."
  type        = bool
  default     = true
}

variable "alarms" {
  description = <<-EOT
    The alarms and their thresholds. `docs/operations.md` has a runbook for each alarm.

    - `actions`: ARNs to notify when an alarm starts and ends, such as the ARN of an SNS topic.
    - `lateness_p99_ms`, `oldest_due_ms`: the permitted lateness of jobs, in milliseconds.
    - `memory_percent`: the permitted memory usage of Redis, in percent of `maxmemory`.
    - `outbox_minutes`: the permitted time for which the outbox contains jobs, in minutes.
  EOT
  type = object({
    enabled         = optional(bool, true)
    actions         = optional(list(string), [])
    lateness_p99_ms = optional(number, 5000)
    oldest_due_ms   = optional(number, 60000)
    memory_percent  = optional(number, 75)
    outbox_minutes  = optional(number, 10)
  })
  default  = {}
  nullable = false

  validation {
    condition     = var.alarms.memory_percent > 0 && var.alarms.memory_percent < 100
    error_message = "memory_percent must be between 0 and 100."
  }
  validation {
    condition     = var.alarms.lateness_p99_ms > 0 && var.alarms.oldest_due_ms > 0 && var.alarms.outbox_minutes >= 1 && var.alarms.outbox_minutes <= 60
    error_message = "lateness_p99_ms and oldest_due_ms must be above 0, and outbox_minutes between 1 and 60."
  }
}

variable "dashboard" {
  description = "Whether to create the CloudWatch dashboard."
  type        = bool
  default     = true
}
