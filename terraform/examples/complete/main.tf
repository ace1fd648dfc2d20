# A deployment that uses most settings. Start from ../minimal and add the settings that you need.

provider "aws" {
  region = var.region

  default_tags {
    tags = { team = "platform" }
  }
}

module "sluice" {
  source = "../../module"

  name = "sluice-prod"

  # Run `make package`, upload dist/*.zip, and pass dist/zip_sha256.tfvars.json with -var-file.
  packages = { s3 = { bucket = var.artifact_bucket, prefix = "sluice/${var.release}/", sha256 = var.zip_sha256 } }

  queues = {
    orders = { consumer_timeout_seconds = 60 }
    emails = { max_receive_count = 10 }
    ledger = { fifo = true }
  }
  queue_shards = 8

  # Three shards with two replicas each, in three zones. The functions use the cluster protocol.
  cache              = { node_type = "cache.m7g.large", shards = 3, replicas = 2 }
  availability_zones = [for suffix in ["a", "b", "c"] : "${var.region}${suffix}"]

  # Quorum locks survive the loss of any one of these caches.
  quorum_nodes = 3

  functions = {
    lock       = { reserved_concurrency = 400 } # each waiting lock occupies an instance
    dispatcher = { memory_mb = 512 }
  }
  throttle = { rate = 5000, burst = 5000 }

  # The policy "shop-per-key" limits the requests to the shop's API for each API key.
  authorizer = { apis = { shop = aws_apigatewayv2_api.shop.id }, policy = "shop-per-key", key = "$request.header.x-api-key" }

  log_retention_days = 90
  alarms             = { actions = [aws_sns_topic.oncall.arn], lateness_p99_ms = 1000 }
  tags               = { environment = "prod" }
}

resource "aws_sns_topic" "oncall" {
  name              = "sluice-oncall"
  kms_master_key_id = module.sluice.encryption_key_arn
}

resource "aws_apigatewayv2_api" "shop" {
  name          = "shop"
  protocol_type = "HTTP"
}

# A route of the shop's API. API Gateway calls the limiter before each request.
resource "aws_apigatewayv2_route" "checkout" {
  api_id             = aws_apigatewayv2_api.shop.id
  route_key          = "POST /checkout"
  authorization_type = "CUSTOM"
  authorizer_id      = module.sluice.authorizer_ids["shop"]
}

# Lets the consumer's role receive and decrypt messages of the queue "orders".
resource "aws_iam_role_policy" "consumer" {
  name = "consume-orders"
  role = var.consumer_role

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      { Effect = "Allow", Action = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"], Resource = [module.sluice.queue_arns["orders"]] },
      { Effect = "Allow", Action = ["kms:Decrypt"], Resource = [module.sluice.encryption_key_arn] },
    ]
  })
}

# Lets the consumer's role call the API, to acknowledge jobs.
resource "aws_iam_role_policy" "caller" {
  name   = "call-sluice"
  role   = var.consumer_role
  policy = module.sluice.caller_policy
}
