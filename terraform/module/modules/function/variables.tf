variable "name" {
  description = "The function's name."
  type        = string
}

variable "description" {
  description = "A description of the function."
  type        = string
}

variable "account" {
  description = "The ID of the account."
  type        = string
}

variable "partition" {
  description = "The partition, such as aws."
  type        = string
}

variable "region" {
  description = "The region."
  type        = string
}

variable "code" {
  description = "The zip, as a local file or as an object in S3, and its SHA-256 digest in base64."
  type = object({
    filename  = optional(string)
    s3_bucket = optional(string)
    s3_key    = optional(string)
    hash      = optional(string)
  })
}

variable "architecture" {
  description = "The processor architecture: arm64 or x86_64."
  type        = string
}

variable "settings" {
  description = "The memory, the timeout and the reserved concurrency."
  type = object({
    memory_mb            = number
    timeout_seconds      = number
    reserved_concurrency = number
  })
}

variable "environment" {
  description = "The environment variables."
  type        = map(string)
}

variable "statements" {
  description = "Permissions in addition to the permissions for logs, the key, the network and traces."
  type = list(object({
    sid       = string
    actions   = list(string)
    resources = list(string)
  }))
}

variable "vpc_config" {
  description = "The subnets and security groups of the function. Null without a VPC."
  type = object({
    subnet_ids         = list(string)
    security_group_ids = list(string)
  })
}

variable "key_arn" {
  description = "The KMS key for logs and environment variables."
  type        = string
}

variable "log_retention_days" {
  description = "The number of days to keep logs."
  type        = number
}

variable "tracing" {
  description = "Whether the function sends traces to X-Ray."
  type        = bool
}

variable "tags" {
  description = "Tags of all resources."
  type        = map(string)
}
