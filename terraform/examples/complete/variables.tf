variable "region" {
  description = "The region to deploy to."
  type        = string
  default     = "eu-central-1"
}

variable "artifact_bucket" {
  description = "The bucket with the functions' zips."
  type        = string
}

variable "release" {
  description = "The release to deploy, such as 1.0.0."
  type        = string
}

variable "zip_sha256" {
  description = "The SHA-256 digest of each zip in base64, by function."
  type        = map(string)
}

variable "consumer_role" {
  description = "The name of the IAM role of the service that consumes the queue orders."
  type        = string
}
