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
  description = "Private subnets of the VPC, in at least two availability zones."
  type        = list(string)
}

variable "private_route_table_ids" {
  description = "The route tables of the subnets."
  type        = list(string)
}

variable "redis_host" {
  description = "The host name of the Redis."
  type        = string
}

variable "redis_secret_arn" {
  description = "The ARN of the secret that contains the password of the Redis."
  type        = string
}

variable "redis_security_group_id" {
  description = "The security group of the Redis."
  type        = string
}
