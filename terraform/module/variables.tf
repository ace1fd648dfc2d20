# What is deployed. Where it stands (network, cache, keys) is in variables_stores.tf; what operators see is in variables_operations.tf.

variable "name" {
  description = "Prefix of every resource's name. Two deployments in one account and region need different names."
  type        = string
  default     = "sluice"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,18}[a-z0-9]$", var.name)) && !strcontains(var.name, "--")
    error_message = "The name must have 2 to 20 lower-case letters, digits and single hyphens, start with a letter and not end with a hyphen."
  }
}

variable "tags" {
  description = "Tags of every resource that can have some, beside the provider's default tags."
  type        = map(string)
  default     = {}
}

variable "queues" {
  description = <<-EOT
    The job queues, by the name that callers use in `/v1/queues/{queue}`. For each, an SQS queue and a dead-letter queue are made.

    - `fifo`: ordered by the job's `group`, and deduplicated.
    - `consumer_timeout_seconds`: the longest that a consumer works on one message. The visibility timeout is six times that.
    - `max_receive_count`: how often SQS delivers a message before it goes to the dead-letter queue.
    - `retention_seconds`: how long SQS keeps a message that nobody takes.

    The functions are told of all queues in one environment variable, and Lambda gives all variables 4 KB: that is room for 30 queues with names of ten letters.
  EOT
  type = map(object({
    fifo                     = optional(bool, false)
    consumer_timeout_seconds = optional(number, 30)
    max_receive_count        = optional(number, 5)
    retention_seconds        = optional(number, 345600)
  }))
  default = {}

  validation {
    condition     = alltrue([for name in keys(var.queues) : can(regex("^[A-Za-z0-9][A-Za-z0-9_-]{0,47}$", name))])
    error_message = "A queue's name must have 1 to 48 letters, digits, hyphens and underscores, and start with a letter or digit."
  }
  validation {
    # What a queue takes: its name twice, and what surrounds it in its URL.
    condition     = sum(concat([0], [for name in keys(var.queues) : 91 + 2 * length(name)])) <= 3400
    error_message = "These are more queues than the functions can be told of: Lambda gives environment variables 4 KB. Make a second deployment for some of them."
  }
  validation {
    condition     = alltrue([for q in values(var.queues) : q.consumer_timeout_seconds >= 1 && q.consumer_timeout_seconds <= 7200])
    error_message = "consumer_timeout_seconds must be between 1 and 7200: SQS hides a message for 12 hours at most."
  }
  validation {
    condition     = alltrue([for q in values(var.queues) : q.max_receive_count >= 1 && q.max_receive_count <= 1000])
    error_message = "max_receive_count must be between 1 and 1000."
  }
  validation {
    condition     = alltrue([for q in values(var.queues) : q.retention_seconds >= 60 && q.retention_seconds <= 1209600])
    error_message = "retention_seconds must be between 60 and 1209600 (14 days)."
  }
}

variable "queue_shards" {
  description = "Into how many shards each queue is split. More shards let more claims run at once, on more nodes of a cluster. It can be changed at any time: no job is stranded."
  type        = number
  default     = 4

  validation {
    condition     = var.queue_shards >= 1 && var.queue_shards <= 256 && floor(var.queue_shards) == var.queue_shards
    error_message = "queue_shards must be a whole number between 1 and 256."
  }
}

variable "dedup_window_ms" {
  description = "How long the id of a finished job stays taken, and the job readable, in milliseconds."
  type        = number
  default     = 3600000

  validation {
    condition     = var.dedup_window_ms >= 1000 && var.dedup_window_ms <= 604800000
    error_message = "dedup_window_ms must be between 1000 (a second) and 604800000 (seven days)."
  }
}

variable "dead_retention_ms" {
  description = "How long a dead job is kept for a redrive, in milliseconds."
  type        = number
  default     = 1209600000

  validation {
    condition     = var.dead_retention_ms >= 60000 && var.dead_retention_ms <= 31622400000
    error_message = "dead_retention_ms must be between 60000 (a minute) and 31622400000 (366 days)."
  }
}

variable "packages" {
  description = <<-EOT
    Where the functions' zips are: `lock.zip`, `enqueue.zip`, `dispatcher.zip` and `limit.zip`, as `make package` makes them.

    - `directory`: a local folder, relative to where tofu runs; by default `dist`, or the `dist` of the checkout that the module is part of. For `x86_64`
      the zips are in its folder `amd64`.
    - `s3`: take them from a bucket instead. `sha256` gives each zip's digest in base64, so that a new zip under the same key is deployed.
  EOT
  type = object({
    directory = optional(string)
    s3 = optional(object({
      bucket = string
      prefix = optional(string, "")
      sha256 = optional(map(string), {})
    }))
  })
  default  = {}
  nullable = false
}

variable "architecture" {
  description = "The functions' processor: `arm64` or `x86_64`."
  type        = string
  default     = "arm64"

  validation {
    condition     = contains(["arm64", "x86_64"], var.architecture)
    error_message = "The architecture must be arm64 or x86_64."
  }
}

variable "functions" {
  description = <<-EOT
    Settings that differ from the defaults, by function (`lock`, `enqueue`, `dispatcher`, `limit`). `reserved_concurrency` both guarantees and limits
    how many instances run at once; -1 reserves nothing. A lock that waits holds an instance for as long.
  EOT
  type = map(object({
    memory_mb            = optional(number)
    timeout_seconds      = optional(number)
    reserved_concurrency = optional(number)
  }))
  default = {}

  validation {
    condition     = alltrue([for name in keys(var.functions) : contains(["lock", "enqueue", "dispatcher", "limit"], name)])
    error_message = "The functions are lock, enqueue, dispatcher and limit."
  }
  validation {
    condition     = alltrue([for f in values(var.functions) : f.memory_mb == null ? true : f.memory_mb >= 128 && f.memory_mb <= 10240])
    error_message = "memory_mb must be between 128 and 10240."
  }
  validation {
    condition     = try(var.functions["dispatcher"].timeout_seconds, null) == null ? true : var.functions["dispatcher"].timeout_seconds >= 90 && var.functions["dispatcher"].timeout_seconds <= 900
    error_message = "The dispatcher's timeout_seconds must be between 90 and 900: it is invoked every minute and works until its successor has taken over."
  }
  validation {
    condition     = alltrue([for name, f in var.functions : name == "dispatcher" || f.timeout_seconds == null ? true : f.timeout_seconds >= 1 && f.timeout_seconds <= 30])
    error_message = "timeout_seconds must be between 1 and 30: API Gateway waits no longer."
  }
  validation {
    condition     = alltrue([for f in values(var.functions) : f.reserved_concurrency == null ? true : f.reserved_concurrency == -1 || f.reserved_concurrency >= 1])
    error_message = "reserved_concurrency must be at least 1, or -1 for none."
  }
  validation {
    condition     = coalesce(try(var.functions["dispatcher"].reserved_concurrency, null), -1) == -1 ? true : var.functions["dispatcher"].reserved_concurrency >= 3
    error_message = "The dispatcher's reserved_concurrency must be at least 3: one that works, its successor, and one that EventBridge fired twice."
  }
}

variable "front_door" {
  description = "How callers reach the API: `http_api` (API Gateway, one endpoint) or `function_url` (a Lambda function URL for each function: cheaper, no throttling or access log). Both demand SigV4."
  type        = string
  default     = "http_api"

  validation {
    condition     = contains(["http_api", "function_url"], var.front_door)
    error_message = "The front_door must be http_api or function_url."
  }
}

variable "throttle" {
  description = "The HTTP API's limits for all callers together: `rate` requests per second, with bursts of `burst`."
  type = object({
    rate  = optional(number, 1000)
    burst = optional(number, 2000)
  })
  default  = {}
  nullable = false

  validation {
    condition     = var.throttle.rate >= 1 && var.throttle.burst >= 1
    error_message = "rate and burst must be at least 1."
  }
}

variable "authorizer" {
  description = <<-EOT
    Lets other HTTP APIs use the function `limit` as their REQUEST authorizer, so that a policy of Sluice limits their callers.

    - `apis`: the ids of those APIs, under names of your choice.
    - `policy`, `key`: the policy, and where in a request the key is, such as `$request.header.x-api-key` or `$context.identity.sourceIp`. The stage
      variables `sluice_policy` and `sluice_key` of an API go before them.
  EOT
  type = object({
    apis   = map(string)
    policy = optional(string)
    key    = optional(string, "$context.identity.sourceIp")
  })
  default = null
}
