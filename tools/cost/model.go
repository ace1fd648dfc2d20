package main

import (
	"fmt"
	"strings"

	"github.com/sluicehq/sluice/shared/telemetry"
)

// item is a line of a bill.
type item struct {
	name    string
	dollars float64
}

type bill []item

func (b bill) total() float64 {
	var sum float64
	for _, i := range b {
		sum += i.dollars
	}
	return sum
}

// metrics is how many CloudWatch metrics a deployment has.
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

// alarms is how many the module makes: three of the deployment, six of each queue, two of each
// function, the API's, and two of Redis.
const alarms = 3 + 6*queues + 2*4 + 1 + 2

// idle is what a deployment costs that nobody calls.
func idle(serverless bool) bill {
	cache := item{"ElastiCache: 2 × cache.t4g.small", 2 * smallNodePerHour * hours}
	if serverless {
		cache = item{"ElastiCache Serverless, at its least", serverlessPerGBHour*serverlessLeastGB*hours +
			pollECPU*hours*3600*ecpuPerMillion/million}
	}
	return bill{
		cache,
		{"the dispatcher, always on", lambda(1, hours*3600*overlap) + float64(hours*60)*lambdaPerMillion/million},
		{"an endpoint for SQS in two zones", zones * endpointPerHour * hours},
		{fmt.Sprintf("%d metrics", metrics()), float64(metrics()) * metricPerMonth},
		{fmt.Sprintf("%d alarms", alarms), alarms * alarmPerMonth},
		{"a KMS key", keyPerMonth},
	}
}

// lambda is the duration of calls, without their requests.
func lambda(calls, seconds float64) float64 { return calls * seconds * memoryGB * lambdaPerGBSecond }

// calls is what so many calls of the API cost, of which each is billed for seconds and logs bytes.
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

// jobs is the cost of n jobs on top of the idle deployment, pushed in batches; consumers receive
// and delete in tens.
func jobs(n, batch float64) bill {
	seconds := enqueueSeconds
	if batch > 1 {
		seconds = batchSeconds
	}
	return append(calls(n/batch, seconds, logBytes, true),
		item{"SQS: send, receive, delete", 3 * n / 10 / million * sqsPerMillion},
		item{"ECPUs, on Serverless", n * ecpuPerJob / million * ecpuPerMillion})
}

// checks is the cost of n checks of a limit on top of the idle deployment.
func checks(n, bytes float64, api bool) bill {
	return append(calls(n, checkSeconds, bytes, api),
		item{"ECPUs, on Serverless", n * ecpuPerCheck / million * ecpuPerMillion})
}

func scheduler(n float64) float64 { return max(0, n-schedulerFree) / million * schedulerPerMillion }

func qstash(n float64) float64 { return n / million * qstashPerMillion }

func tables() string {
	var b strings.Builder
	small, serverless := idle(false), idle(true)
	b.WriteString("\n### A deployment that nobody calls\n\n| a month | two small nodes | Serverless |\n| --- | ---: | ---: |\n")
	for i := range small {
		name := small[i].name
		if i == 0 {
			name = "the cache"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", name, dollars(small[i].dollars), dollars(serverless[i].dollars))
	}
	fmt.Fprintf(&b, "| **together** | **%s** | **%s** |\n", dollars(small.total()), dollars(serverless.total()))

	b.WriteString("\n### Jobs\n\nOn top of the idle deployment:\n\n| | 10 million, one a call | 10 million, 100 a call | 100 million, 100 a call |\n| --- | ---: | ---: | ---: |\n")
	columns := []bill{jobs(10*million, 1), jobs(10*million, 100), jobs(100*million, 100)}
	writeRows(&b, columns)
	b.WriteString("\nEverything, on Serverless, compared with other services:\n\n| a month | 10 million jobs | 100 million jobs |\n| --- | ---: | ---: |\n")
	fmt.Fprintf(&b, "| Sluice, 100 a call | %s | %s |\n", dollars(serverless.total()+columns[1].total()),
		dollars(serverless.total()+columns[2].total()))
	fmt.Fprintf(&b, "| Sluice, one a call | %s | %s |\n", dollars(serverless.total()+columns[0].total()),
		dollars(serverless.total()+jobs(100*million, 1).total()))
	fmt.Fprintf(&b, "| EventBridge Scheduler | %s | %s |\n", dollars(scheduler(10*million)),
		dollars(scheduler(100*million)))
	fmt.Fprintf(&b, "| QStash | %s | %s |\n", dollars(qstash(10*million)), dollars(qstash(100*million)))
	fmt.Fprintf(&b, "| a call of an HTTP API for each job, and nothing behind it | %s | %s |\n",
		dollars(10*apiPerMillion), dollars(100*apiPerMillion))

	b.WriteString("\n### Limits\n\nA month of 100 million checks, on top of the idle deployment:\n\n")
	b.WriteString("| | as it comes | `log_level = \"warn\"` | and `front_door = \"function_url\"` |\n| --- | ---: | ---: | ---: |\n")
	writeRows(&b, []bill{checks(100*million, logBytes, true), checks(100*million, quietLogBytes, true),
		checks(100*million, quietLogBytes, false)})
	fmt.Fprintf(&b, "\nThe calls of an HTTP API alone, with nothing behind it, would be %s.\n\n",
		dollars(100*apiPerMillion))

	fmt.Fprintf(&b,
		"### An outage\n\nA job that is taken into the outbox is two writes, and two more when it returns or was sent: %s for a million jobs.\n", dollars(4*dynamoWritePerMillion))
	return b.String()
}

// writeRows writes bills side by side, which have the same lines.
func writeRows(b *strings.Builder, bills []bill) {
	for i := range bills[0] {
		fmt.Fprintf(b, "| %s |", bills[0][i].name)
		for _, c := range bills {
			fmt.Fprintf(b, " %s |", dollars(c[i].dollars))
		}
		b.WriteString("\n")
	}
	b.WriteString("| **together** |")
	for _, c := range bills {
		fmt.Fprintf(b, " **%s** |", dollars(c.total()))
	}
	b.WriteString("\n")
}

func dollars(v float64) string { return fmt.Sprintf("$%.2f", v) }
