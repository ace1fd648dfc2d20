variable "region" {
  description = "The region to deploy to."
  type        = string
  default     = "eu-central-1"
}

variable "vpc_id" {
  description = "The ID of the VPC."
  type        = string
}

variable "private_subnet_ids" {
  description = "The IDs of private subnets of the VPC, in at least two availability zones."
  type        = list(string)
}

variable "private_route_table_ids" {
  description = "The IDs of the subnets' route tables."
  type        = list(string)
}

variable "redis_host" {
  description = "The host name of the Redis server."
  type        = string
}

variable "redis_secret_arn" {
  description = "The ARN of the secret that contains the Redis password."
  type        = string
}

variable "redis_security_group_id" {
  description = "The ID of the security group of the Redis server."
  type        = string
}
