variable "region" {
  description = "Where to deploy."
  type        = string
  default     = "eu-central-1"
}
