variable "region" {
  description = "Where to deploy."
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
  description = "Each zip's SHA-256 in base64, by function."
  type        = map(string)
}

variable "consumer_role" {
  description = "The name of the role that your consumer of the queue orders runs as."
  type        = string
}
