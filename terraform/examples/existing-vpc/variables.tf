variable "region" {
  description = "Where to deploy."
  type        = string
  default     = "eu-central-1"
}

variable "vpc_id" {
  description = "The VPC."
  type        = string
}

variable "private_subnet_ids" {
  description = "Its private subnets, in two zones or more."
  type        = list(string)
}

variable "private_route_table_ids" {
  description = "Their route tables."
  type        = list(string)
}

variable "redis_host" {
  description = "The host name of the Redis."
  type        = string
}

variable "redis_secret_arn" {
  description = "The ARN of the secret that is its password."
  type        = string
}

variable "redis_security_group_id" {
  description = "Its security group."
  type        = string
}
