variable "region" {
  description = "The region to deploy to."
  type        = string
  default     = "eu-central-1"
}
