# Variables for the cache, the network and the encryption key.

variable "cache" {
  description = <<-EOT
    The new ElastiCache for Valkey. Ignored if `existing_cache` is set.

    - `kind`: `replication_group` (nodes of a fixed size) or `serverless`. A replication group has `maxmemory-policy noeviction`. Serverless evicts
      keys with a TTL at its data limit. The module sets no limit, so the limit is the maximum of 5 TB.
    - `engine_version`: the version of Valkey. To upgrade, change this value.
    - `node_type`, `shards`, `replicas`: with more than one shard, the group runs in cluster mode. Without a replica, there is no failover.
    - `max_ecpu_per_second`: for serverless only. Above it, ElastiCache throttles calls.
    - `snapshot_retention_days`: the number of days to keep snapshots; 0 disables snapshots.
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
    error_message = "cache.kind must be replication_group or serverless."
  }
  validation {
    condition     = can(regex("^(7\\.2|[89]\\.[0-9])$", var.cache.engine_version))
    error_message = "cache.engine_version must be 7.2 or a later version of Valkey, such as 8.1."
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
    An existing Redis (6.2 or later) or Valkey to use instead of `cache`. It must run with `maxmemory-policy noeviction`.

    - `url`: `rediss://host:6379`; commas separate several nodes of a cluster. It must contain no password, because the URL is in the state.
    - `auth`: `none`, `iam` or `password`.
      - `iam` requires `user`, `iam_resource` (the name of the cache), `connect_arns` (the ARNs of the cache and of the user) and, for a serverless
        cache, `serverless`.
      - `password` requires `secret_arn`, a secret of Secrets Manager. The secret is the password, or an object with `password` and, optionally,
        `username`. Without a `username`, set `user`. Set `secret_kms_key_arn` if your own KMS key encrypts the secret.
    - `security_group` (the cache's security group, to which the module adds a rule that admits the functions at `port`) or `cidrs` (the addresses
      of the cache): required if the functions run in a VPC.
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
    error_message = "auth = \"iam\" requires user, iam_resource and connect_arns."
  }
  validation {
    condition     = try(var.existing_cache.auth, "none") != "password" ? true : var.existing_cache.secret_arn != null
    error_message = "auth = \"password\" requires secret_arn."
  }
}

variable "quorum_nodes" {
  description = "The number of independent single-node caches for locks with `consistency = \"quorum\"`: 0, 3 or 5. The nodes are in different availability zones where possible."
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
    The network to use. By default, the module creates a VPC. It has only private subnets, no internet gateway and no NAT, and endpoints for the services that the functions call.

    - `id`, `subnet_ids`: the VPC, and private subnets in at least two availability zones.
    - `create_endpoints`: whether to create the endpoints in this VPC. The DynamoDB endpoint needs `route_table_ids`. Without endpoints, the
      subnets need another route to SQS and DynamoDB.
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
    error_message = "vpc.subnet_ids must have at least one subnet; use at least two, in different availability zones."
  }
}

variable "vpc_cidr" {
  description = "The address range of the new VPC."
  type        = string
  default     = "10.64.0.0/22"

  validation {
    condition     = can(cidrsubnet(var.vpc_cidr, 2, 3)) && try(tonumber(split("/", var.vpc_cidr)[1]), 32) <= 25
    error_message = "vpc_cidr must be an IPv4 range of /25 or larger, such as 10.64.0.0/22."
  }
}

variable "availability_zones" {
  description = "The two or three availability zones of the new VPC. Defaults to the first two of the region."
  type        = list(string)
  default     = []

  validation {
    condition     = contains([0, 2, 3], length(var.availability_zones))
    error_message = "availability_zones must have two or three zones, or none for the default."
  }
}

variable "attach_vpc" {
  description = "Whether the functions run in a VPC. Set it to false only for an existing cache with a public address, or for LocalStack."
  type        = bool
  default     = true
}

variable "encryption_key" {
  description = "An existing KMS key for all data at rest, instead of a new one. Its policy must permit CloudWatch Logs of this region to use it."
  type        = object({ arn = string })
  default     = null
}

variable "deletion_protection" {
  description = "Whether to protect the DynamoDB tables against deletion and to take a final snapshot of the cache. Set it to false and apply before you destroy a deployment."
  type        = bool
  default     = true
}
