# Variables for the functions, the queues and the API. variables_stores.tf declares the variables
# for the cache, the network and the encryption key. variables_operations.tf declares the variables
# for logs, alarms and the dashboard.

variable "name" {
  description = "The prefix of the name of every resource. Two deployments in one account and region need different names."
  type        = string
  default     = "sluice"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,18}[a-z0-9]$", var.name)) && !strcontains(var.name, "--")
    error_message = "The name must have 2 to 20 lower-case letters, digits and single hyphens, start with a letter and not end with a hyphen."
  }
}

variable "tags" {
  description = "Tags of all resources that support tags, in addition to the default tags of the provider."
  type        = map(string)
  default     = {}
}

variable "queues" {
  description = <<-EOT
    The job queues, by the name that callers use in `/v1/queues/{queue}`. Each gets an SQS queue and a dead-letter queue.

    - `fifo`: whether SQS keeps the order of each `group` of jobs and removes duplicates.
    - `consumer_timeout_seconds`: the maximum time that a consumer needs for one message. The visibility timeout is six times this value.
    - `max_receive_count`: the number of deliveries of a message. SQS then moves the message to the dead-letter queue.
    - `retention_seconds`: the time for which SQS keeps a message that no consumer deletes.

    One environment variable lists all queues for the functions. Lambda limits the environment to 4 KB, which is enough for 30 queues with
    names of ten letters.
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
    # Each queue needs about this many bytes in the environment: for its name, and for its URL,
    # which contains the name again.
    condition     = sum(concat([0], [for name in keys(var.queues) : 91 + 2 * length(name)])) <= 3400
    error_message = "The list of queues exceeds the 4 KB that Lambda permits for environment variables. Move some of the queues to a second deployment."
  }
  validation {
    condition     = alltrue([for q in values(var.queues) : q.consumer_timeout_seconds >= 1 && q.consumer_timeout_seconds <= 7200])
    error_message = "consumer_timeout_seconds must be between 1 and 7200, because the visibility timeout is at most 12 hours."
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
  description = "The number of shards of each queue. More shards permit more concurrent claims, on more nodes of a cluster. A change never loses a job."
  type        = number
  default     = 4

  validation {
    condition     = var.queue_shards >= 1 && var.queue_shards <= 256 && floor(var.queue_shards) == var.queue_shards
    error_message = "queue_shards must be an integer between 1 and 256."
  }
}

variable "dedup_window_ms" {
  description = "How long a finished job stays readable and its ID stays in use, in milliseconds."
  type        = number
  default     = 3600000

  validation {
    condition     = var.dedup_window_ms >= 1000 && var.dedup_window_ms <= 604800000
    error_message = "dedup_window_ms must be between 1000 (one second) and 604800000 (seven days)."
  }
}

variable "dead_retention_ms" {
  description = "How long a dead job stays available for a redrive, in milliseconds."
  type        = number
  default     = 1209600000

  validation {
    condition     = var.dead_retention_ms >= 60000 && var.dead_retention_ms <= 31622400000
    error_message = "dead_retention_ms must be between 60000 (one minute) and 31622400000 (366 days)."
  }
}

variable "packages" {
  description = <<-EOT
    The location of the functions' zips `lock.zip`, `enqueue.zip`, `dispatcher.zip` and `limit.zip`, which `make package` builds.

    - `directory`: a local folder, relative to the folder in which tofu runs. Defaults to `dist`, or to the `dist` of the checkout that contains
      the module. The zips for `x86_64` are in its folder `amd64`.
    - `s3`: a bucket to use instead. `sha256` has the digest of each zip in base64. Terraform deploys a new zip with the same key only if its
      digest changes.
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
  description = "The processor architecture of the functions: `arm64` or `x86_64`."
  type        = string
  default     = "arm64"

  validation {
    condition     = contains(["arm64", "x86_64"], var.architecture)
    error_message = "The architecture must be arm64 or x86_64."
  }
}

variable "functions" {
  description = <<-EOT
    Settings that differ from the defaults, by function (`lock`, `enqueue`, `dispatcher`, `limit`). `reserved_concurrency` is both the guaranteed
    and the maximum number of concurrent instances; -1 reserves none. A request that waits for a lock occupies an instance.
  EOT
  type = map(object({
    memory_mb            = optional(number)
    timeout_seconds      = optional(number)
    reserved_concurrency = optional(number)
  }))
  default = {}

  validation {
    condition     = alltrue([for name in keys(var.functions) : contains(["lock", "enqueue", "dispatcher", "limit"], name)])
    error_message = "The keys of functions must be lock, enqueue, dispatcher or limit."
  }
  validation {
    condition     = alltrue([for f in values(var.functions) : f.memory_mb == null ? true : f.memory_mb >= 128 && f.memory_mb <= 10240])
    error_message = "memory_mb must be between 128 and 10240."
  }
  validation {
    condition     = try(var.functions["dispatcher"].timeout_seconds, null) == null ? true : var.functions["dispatcher"].timeout_seconds >= 90 && var.functions["dispatcher"].timeout_seconds <= 900
    error_message = "The dispatcher's timeout_seconds must be between 90 and 900, because the dispatcher runs until the next invocation, a minute later, takes over."
  }
  validation {
    condition     = alltrue([for name, f in var.functions : name == "dispatcher" || f.timeout_seconds == null ? true : f.timeout_seconds >= 1 && f.timeout_seconds <= 30])
    error_message = "timeout_seconds must be between 1 and 30, because API Gateway waits for at most 30 s."
  }
  validation {
    condition     = alltrue([for f in values(var.functions) : f.reserved_concurrency == null ? true : f.reserved_concurrency == -1 || f.reserved_concurrency >= 1])
    error_message = "reserved_concurrency must be at least 1, or -1 for none."
  }
  validation {
    condition     = coalesce(try(var.functions["dispatcher"].reserved_concurrency, null), -1) == -1 ? true : var.functions["dispatcher"].reserved_concurrency >= 3
    error_message = "The dispatcher's reserved_concurrency must be at least 3: for the running instance, for its successor, and for a duplicate event from EventBridge."
  }
}

variable "front_door" {
  description = "How callers reach the API: `http_api` (API Gateway, one endpoint) or `function_url` (a Lambda function URL for each function, which is cheaper but has no throttling and no access log). Both require SigV4."
  type        = string
  default     = "http_api"

  validation {
    condition     = contains(["http_api", "function_url"], var.front_door)
    error_message = "The front_door must be http_api or function_url."
  }
}

variable "throttle" {
  description = "The throttling of the HTTP API for all callers together: `rate` requests per second, with bursts of `burst` requests."
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
    Other HTTP APIs that use the function `limit` as their REQUEST authorizer, so that a policy of Sluice limits their callers.

    - `apis`: the IDs of these APIs, under names of your choice.
    - `policy`, `key`: the policy, and the part of a request that is the key, such as `$request.header.x-api-key` or `$context.identity.sourceIp`.
      The stage variables `sluice_policy` and `sluice_key` of an API override them.
  EOT
  type = object({
    apis   = map(string)
    policy = optional(string)
    key    = optional(string, "$context.identity.sourceIp")
  })
  default = null
}
