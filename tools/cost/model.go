package main

import (
	"fmt"
	"strings"

	"github.com/sluicehq/sluice/shared/telemetry"
)

// item is a line of a bill, in dollars.
type item struct {
	name    string
	dollars float64
}

// bill is a list of items for a month.
type bill []item

// total returns the sum in dollars.
func (b bill) total() float64 {
	var sum float64
	for _, i := range b {
		sum += i.dollars
	}
	return sum
}

// metrics returns the number of CloudWatch metrics of a deployment.
func metrics() int {
	n := 0
	for _, d := range telemetry.Catalogue() {
		times := 1
		for _, dimension := range d.Dimensions {
			times *= map[string]int{"queue": queues, "outcome": outcomes}[dimension]
		}
		n += times
	}
	return n
}

// alarms is the number of alarms that the module creates: three for the deployment, six for each
// queue, two for each function, one for the API, and two for Redis.
const alarms = 3 + 6*queues + 2*4 + 1 + 2

// idle returns the bill of a deployment without calls.
func idle(serverless bool) bill {
	cache := item{"ElastiCache: 2 × cache.t4g.small", 2 * smallNodePerHour * hours}
	if serverless {
		cache = item{"ElastiCache Serverless, minimum size", serverlessPerGBHour*serverlessLeastGB*hours +
			pollECPU*hours*3600*ecpuPerMillion/million}
	}
	return bill{
		cache,
		{"the dispatcher, which always runs",
			lambda(1, hours*3600*overlap) + float64(hours*60)*lambdaPerMillion/million},
		{"an endpoint for SQS in two zones", zones * endpointPerHour * hours},
		{fmt.Sprintf("%d metrics", metrics()), float64(metrics()) * metricPerMonth},
		{fmt.Sprintf("%d alarms", alarms), alarms * alarmPerMonth},
		{"a KMS key", keyPerMonth},
	}
}

// lambda returns the price of the duration of calls, without the price of the requests.
func lambda(calls, seconds float64) float64 { return calls * seconds * memoryGB * lambdaPerGBSecond }

// calls returns the bill of n calls. Each has a billed duration in seconds, and writes the given
// number of bytes to the log. api selects the HTTP API instead of function URLs.
func calls(n, seconds, bytes float64, api bool) bill {
	b := bill{
		{"API Gateway", n / million * apiPerMillion},
		{"Lambda", n/million*lambdaPerMillion + lambda(n, seconds)},
		{"logs", n * bytes / 1e9 * logPerGB},
	}
	if !api {
		b[0] = item{"function URL", 0}
	}
	return b
}

// jobs returns the bill of n jobs, without the bill of the idle deployment. Producers push batches
// of the given size; consumers receive and delete ten messages per call.
func jobs(n, batch float64) bill {
	seconds := enqueueSeconds
	if batch > 1 {
		seconds = batchSeconds
	}
	return append(calls(n/batch, seconds, logBytes, true),
		item{"SQS: send, receive, delete", 3 * n / 10 / million * sqsPerMillion},
		item{"ECPUs, on Serverless", n * ecpuPerJob / million * ecpuPerMillion})
}

// checks returns the bill of n checks of a limit, without the bill of the idle deployment.
func checks(n, bytes float64, api bool) bill {
	return append(calls(n, checkSeconds, bytes, api),
		item{"ECPUs, on Serverless", n * ecpuPerCheck / million * ecpuPerMillion})
}

// scheduler returns the price of n one-off schedules of EventBridge Scheduler.
func scheduler(n float64) float64 { return max(0, n-schedulerFree) / million * schedulerPerMillion }

// qstash returns the price of n messages of QStash.
func qstash(n float64) float64 { return n / million * qstashPerMillion }

// tables returns the tables of the page in Markdown.
func tables() string {
	var b strings.Builder
	small, serverless := idle(false), idle(true)
	b.WriteString("\n### A deployment without calls\n\n" +
		"| per month | two small nodes | Serverless |\n| --- | ---: | ---: |\n")
	for i := range small {
		name := small[i].name
		if i == 0 {
			name = "the cache"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", name, dollars(small[i].dollars), dollars(serverless[i].dollars))
	}
	fmt.Fprintf(&b, "| **total** | **%s** | **%s** |\n", dollars(small.total()), dollars(serverless.total()))

	b.WriteString("\n### Jobs\n\nIn addition to the deployment without calls:\n\n" +
		"| per month | 10 million, 1 per call | 10 million, 100 per call | 100 million, 100 per call |\n" +
		"| --- | ---: | ---: | ---: |\n")
	columns := []bill{jobs(10*million, 1), jobs(10*million, 100), jobs(100*million, 100)}
	writeRows(&b, columns)
	b.WriteString("\nThe total on Serverless, compared with alternatives:\n\n" +
		"| per month | 10 million jobs | 100 million jobs |\n| --- | ---: | ---: |\n")
	fmt.Fprintf(&b, "| Sluice, 100 per call | %s | %s |\n", dollars(serverless.total()+columns[1].total()),
		dollars(serverless.total()+columns[2].total()))
	fmt.Fprintf(&b, "| Sluice, 1 per call | %s | %s |\n", dollars(serverless.total()+columns[0].total()),
		dollars(serverless.total()+jobs(100*million, 1).total()))
	fmt.Fprintf(&b, "| EventBridge Scheduler | %s | %s |\n", dollars(scheduler(10*million)),
		dollars(scheduler(100*million)))
	fmt.Fprintf(&b, "| QStash | %s | %s |\n", dollars(qstash(10*million)), dollars(qstash(100*million)))
	fmt.Fprintf(&b, "| one call of an HTTP API per job, without a backend | %s | %s |\n",
		dollars(10*apiPerMillion), dollars(100*apiPerMillion))

	b.WriteString("\n### Limits\n\n100 million checks per month, in addition to the deployment without calls:\n\n")
	b.WriteString("| per month | defaults | `log_level = \"warn\"` | and `front_door = \"function_url\"` |\n" +
		"| --- | ---: | ---: | ---: |\n")
	writeRows(&b, []bill{checks(100*million, logBytes, true), checks(100*million, quietLogBytes, true),
		checks(100*million, quietLogBytes, false)})
	fmt.Fprintf(&b, "\nThe calls of an HTTP API alone, without a backend, would cost %s.\n\n",
		dollars(100*apiPerMillion))

	fmt.Fprintf(&b, "### An outage\n\n"+
		"A job in the outbox costs two writes, and two more when it returns to Redis or is sent:\n"+
		"%s per million jobs.\n", dollars(4*dynamoWritePerMillion))
	return b.String()
}

// writeRows writes a table body with one column for each bill and one row for each item. All bills
// must have the same items.
func writeRows(b *strings.Builder, bills []bill) {
	for i := range bills[0] {
		fmt.Fprintf(b, "| %s |", bills[0][i].name)
		for _, c := range bills {
			fmt.Fprintf(b, " %s |", dollars(c[i].dollars))
		}
		b.WriteString("\n")
	}
	b.WriteString("| **total** |")
	for _, c := range bills {
		fmt.Fprintf(b, " **%s** |", dollars(c.total()))
	}
	b.WriteString("\n")
}

func dollars(v float64) string { return fmt.Sprintf("$%.2f", v) }
