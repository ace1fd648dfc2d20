variable "name" {
  description = "The function's name."
  type        = string
}

variable "description" {
  description = "What the function does."
  type        = string
}

variable "account" {
  description = "The account's id."
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
  description = "The zip: a local file, or an object in S3; and its SHA-256 in base64."
  type = object({
    filename  = optional(string)
    s3_bucket = optional(string)
    s3_key    = optional(string)
    hash      = optional(string)
  })
}

variable "architecture" {
  description = "arm64 or x86_64."
  type        = string
}

variable "settings" {
  description = "Memory, time and concurrency."
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
  description = "What the function may do beside logging, tracing and using the key."
  type = list(object({
    sid       = string
    actions   = list(string)
    resources = list(string)
  }))
}

variable "vpc_config" {
  description = "Where the function runs; null for outside of any VPC."
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
  description = "How long logs are kept."
  type        = number
}

variable "tracing" {
  description = "Whether the function sends traces."
  type        = bool
}

variable "tags" {
  description = "Tags of every resource."
  type        = map(string)
}
