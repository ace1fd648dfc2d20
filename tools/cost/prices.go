package main

// Prices in US dollars, us-east-1, 2026. Those of the second group are AWS' list prices as they
// were known, and not looked up again for this page.
const (
	million = 1e6

	schedulerPerMillion   = 1.00 // EventBridge Scheduler, after the first 14 million of a month
	schedulerFree         = 14e6
	sqsPerMillion         = 0.40 // standard queues, requests of up to 64 KB
	lambdaPerMillion      = 0.20
	lambdaPerGBSecond     = 0.0000133334 // arm64
	dynamoWritePerMillion = 0.625
	serverlessPerGBHour   = 0.084 // ElastiCache Serverless for Valkey
	serverlessLeastGB     = 0.1
	ecpuPerMillion        = 0.0023
	qstashPerMillion      = 10.00

	apiPerMillion    = 1.00 // API Gateway, HTTP API, the first 300 million of a month
	smallNodePerHour = 0.0256
	endpointPerHour  = 0.01 // VPC interface endpoint, for each zone
	logPerGB         = 0.50
	metricPerMonth   = 0.30
	alarmPerMonth    = 0.10
	keyPerMonth      = 1.00
)

// What is assumed of a deployment; the page says so.
const (
	hours          = 720 // a month of 30 days
	zones          = 2
	queues         = 1
	memoryGB       = 0.25
	enqueueSeconds = 0.008 // billed for one call, with its round trip to Redis
	batchSeconds   = 0.020 // for one of 100 jobs
	checkSeconds   = 0.005
	overlap        = 1.03 // of a dispatcher with its successor
	ecpuPerJob     = 12   // enqueue, claim and acceptance, each a script
	ecpuPerCheck   = 3
	pollECPU       = 20     // a second: four shards are looked at, a heartbeat, a wake-up subscription
	logBytes       = 1600.0 // for each call: Lambda's own three lines, ours, two lines of metrics, the access log's
	quietLogBytes  = 950.0  // at log_level = "warn"
	outcomes       = 4      // that a function really has, each with two metrics
)
