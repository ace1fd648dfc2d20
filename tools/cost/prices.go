package main

// Prices in US dollars, in us-east-1. The prices in the first group are the prices of 2026. The
// prices in the second group are older AWS list prices, which were not checked again in 2026.
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

// Assumptions about a deployment.
const (
	hours          = 720 // a month of 30 days
	zones          = 2
	queues         = 1
	memoryGB       = 0.25
	enqueueSeconds = 0.008 // billed duration of one call, with the round trip to Redis
	batchSeconds   = 0.020 // billed duration of a call with 100 jobs
	checkSeconds   = 0.005
	overlap        = 1.03 // average number of dispatchers: two run during each handover
	ecpuPerJob     = 12   // the scripts for enqueue, claim and acknowledge
	ecpuPerCheck   = 3
	pollECPU       = 20     // per second: polls of four shards, a heartbeat, a subscription to wake-ups
	logBytes       = 1600.0 // per call: 3 lines from Lambda, 1 from Sluice, 2 of metrics, 1 of the access log
	quietLogBytes  = 950.0  // per call at log_level = "warn"
	outcomes       = 4      // outcomes that a function has in practice; two metrics are counted once for each outcome
)
