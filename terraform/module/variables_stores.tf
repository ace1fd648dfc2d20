# Where it stands: the cache, the network, the keys.

variable "cache" {
  description = <<-EOT
    The ElastiCache for Valkey that is made, unless `existing_cache` is given.

    - `kind`: `replication_group` (nodes of a fixed size) or `serverless`. A replication group has `maxmemory-policy noeviction`; serverless evicts
      keys that have a lifetime when it reaches its own limit of 5 TB, so no lower limit is set on it.
    - `engine_version`: of Valkey, explicit, so that an upgrade is a decision.
    - `node_type`, `shards`, `replicas`: with more than one shard the group runs in cluster mode. Without a replica there is no failover.
    - `max_ecpu_per_second`: serverless only; above it calls are throttled.
    - `snapshot_retention_days`: 0 makes no snapshots.
  EOT
  type = object({
    kind                    = optional(string, "replication_group")
    engine_version          = optional(string, "8.1")
    node_type               = optional(string, "cache.t4g.small")
    shards                  = optional(number, 1)
    replicas                = optional(number, 1)
    max_ecpu_per_second     = optional(number, 100000)
    snapshot_retention_days = optional(number, 7)
    snapshot_window         = optional(string, "03:00-04:00")
    maintenance_window      = optional(string, "sun:04:30-sun:05:30")
  })
  default  = {}
  nullable = false

  validation {
    condition     = contains(["replication_group", "serverless"], var.cache.kind)
    error_message = "The cache's kind must be replication_group or serverless."
  }
  validation {
    condition     = can(regex("^(7\\.2|[89]\\.[0-9])$", var.cache.engine_version))
    error_message = "The cache's engine_version must be one of Valkey's, such as 8.1; 7.2 is the first."
  }
  validation {
    condition     = var.cache.shards >= 1 && var.cache.shards <= 500 && var.cache.replicas >= 0 && var.cache.replicas <= 5
    error_message = "The cache must have 1 to 500 shards with 0 to 5 replicas each."
  }
  validation {
    condition     = var.cache.max_ecpu_per_second >= 1000 && var.cache.max_ecpu_per_second <= 15000000
    error_message = "max_ecpu_per_second must be between 1000 and 15000000."
  }
  validation {
    condition     = var.cache.snapshot_retention_days >= 0 && var.cache.snapshot_retention_days <= 35
    error_message = "snapshot_retention_days must be between 0 and 35."
  }
}

variable "existing_cache" {
  description = <<-EOT
    A Redis 6.2+ or Valkey that exists already, instead of `cache`. It must run with `maxmemory-policy noeviction`.

    - `url`: `rediss://host:6379`; several seeds of a cluster are separated by commas. No password belongs in it: it would stand in the state.
    - `auth`: `iam` (with `user`, `iam_resource` = the cache's name, `serverless` when it is a serverless one, and `connect_arns` = the ARNs of the
      cache and of the user), `password` (with `secret_arn` of a Secrets Manager secret, `user` unless it is in the secret, and
      `secret_kms_key_arn` when it has a key of yours) or `none`. The secret is the password, or an object with `password` and maybe `username`.
    - `security_group` (the cache's, which then lets the functions in at `port`) or `cidrs` (where it is): one is needed when the functions run in a VPC.
  EOT
  type = object({
    url                = string
    cluster            = optional(bool, false)
    auth               = optional(string, "none")
    user               = optional(string)
    iam_resource       = optional(string)
    serverless         = optional(bool, false)
    connect_arns       = optional(list(string), [])
    secret_arn         = optional(string)
    secret_kms_key_arn = optional(string)
    security_group     = optional(object({ id = string }))
    cidrs              = optional(list(string), [])
    port               = optional(number, 6379)
  })
  default = null

  validation {
    condition     = var.existing_cache == null ? true : alltrue([for u in split(",", var.existing_cache.url) : can(regex("^rediss?://[^@/]+$", trimspace(u)))])
    error_message = "Each URL must be redis://host:port or rediss://host:port, without a user, a password or a path."
  }
  validation {
    condition     = var.existing_cache == null ? true : contains(["none", "password", "iam"], var.existing_cache.auth)
    error_message = "auth must be none, password or iam."
  }
  validation {
    condition     = try(var.existing_cache.auth, "none") != "iam" ? true : var.existing_cache.user != null && var.existing_cache.iam_resource != null && length(var.existing_cache.connect_arns) > 0
    error_message = "auth = \"iam\" needs user, iam_resource and connect_arns."
  }
  validation {
    condition     = try(var.existing_cache.auth, "none") != "password" ? true : var.existing_cache.secret_arn != null
    error_message = "auth = \"password\" needs secret_arn."
  }
}

variable "quorum_nodes" {
  description = "How many independent single-node caches to make for locks with `consistency = \"quorum\"`: 0 for none, else 3 or 5. They stand in different availability zones as far as there are some."
  type        = number
  default     = 0

  validation {
    condition     = contains([0, 3, 5], var.quorum_nodes)
    error_message = "quorum_nodes must be 0, 3 or 5."
  }
}

variable "quorum_node_type" {
  description = "The node type of the quorum's caches."
  type        = string
  default     = "cache.t4g.micro"
}

variable "vpc" {
  description = <<-EOT
    The network to use. Without it a VPC is made that has private subnets only: no internet gateway, no NAT, endpoints for what the functions call.

    - `id`, `subnet_ids`: private subnets, in two availability zones or more.
    - `create_endpoints`: make the endpoints in it too, with `route_table_ids` for DynamoDB's. Else the subnets need a way to SQS and DynamoDB.
  EOT
  type = object({
    id               = string
    subnet_ids       = list(string)
    create_endpoints = optional(bool, false)
    route_table_ids  = optional(list(string), [])
  })
  default = null

  validation {
    condition     = var.vpc == null ? true : length(var.vpc.subnet_ids) >= 1
    error_message = "Give at least one subnet, better two in different availability zones."
  }
}

variable "vpc_cidr" {
  description = "The address range of the VPC that is made."
  type        = string
  default     = "10.64.0.0/22"

  validation {
    condition     = can(cidrsubnet(var.vpc_cidr, 2, 3)) && try(tonumber(split("/", var.vpc_cidr)[1]), 32) <= 25
    error_message = "vpc_cidr must be an IPv4 range of at least /25."
  }
}

variable "availability_zones" {
  description = "The zones of the VPC that is made: two or three. By default the region's first two."
  type        = list(string)
  default     = []

  validation {
    condition     = contains([0, 2, 3], length(var.availability_zones))
    error_message = "Give two or three availability zones, or none for the default."
  }
}

variable "attach_vpc" {
  description = "Whether the functions run in a VPC. Only an existing cache with a public address, or LocalStack, can do without."
  type        = bool
  default     = true
}

variable "encryption_key" {
  description = "A KMS key of yours for everything at rest, in place of the one that is made. Its policy must let CloudWatch Logs of this region use it."
  type        = object({ arn = string })
  default     = null
}

variable "deletion_protection" {
  description = "Guards the DynamoDB tables against being destroyed, and takes a last snapshot of the cache. Turn it off, and apply, before you destroy a deployment."
  type        = bool
  default     = true
}
