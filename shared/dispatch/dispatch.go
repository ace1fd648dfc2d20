// Package dispatch sends due jobs to SQS. Its loop uses three packages: delayqueue claims due jobs
// in Redis, sqssender sends them, and jobs moves outbox jobs to Redis or, while Redis is
// unavailable, claims them for sending.
//
// A [Dispatcher.Run] works until a newer run has taken over. A late, duplicate or missing
// invocation therefore causes neither a gap nor a duplicate message.
package dispatch

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/delayqueue/sqssender"
	"github.com/sluicehq/sluice/shared/jobs"
	"github.com/sluicehq/sluice/shared/telemetry"
)

// Sender sends claimed jobs to SQS. [sqssender.Sender] implements it.
type Sender interface {
	Send(ctx context.Context, queue, url string, jobs []delayqueue.Claimed) []sqssender.Result
}

// Config tunes a Dispatcher.
type Config struct {
	// Queues maps each queue to the URL of its SQS queue.
	Queues map[string]string
	// ClaimSize is the maximum number of jobs of one claim. Defaults to 500.
	ClaimSize int
	// Lease is the time that a dispatcher has to send the jobs that it claimed. After it, the jobs
	// can be claimed again. Defaults to 30 s.
	Lease time.Duration
	// Poll is the maximum time between two claims of a shard. Defaults to 1 s.
	Poll time.Duration
	// InFlight is the maximum number of claims of one shard that are sent concurrently. Together
	// with the sender's own limit, it prevents the backlog of one queue from starving the other
	// queues. Defaults to 4.
	InFlight int
	// OutboxPoll is the time between two reads of the outbox while Redis is available. Defaults to
	// 5 s.
	OutboxPoll time.Duration
}

func (c Config) withDefaults() Config {
	if c.ClaimSize == 0 {
		c.ClaimSize = delayqueue.MaxBatch
	}
	if c.Lease == 0 {
		c.Lease = 30 * time.Second
	}
	if c.Poll == 0 {
		c.Poll = time.Second
	}
	if c.InFlight == 0 {
		c.InFlight = 4
	}
	if c.OutboxPoll == 0 {
		c.OutboxPoll = 5 * time.Second
	}
	return c
}

// Dispatcher holds the configuration and the clients that its runs share. It is safe for concurrent
// runs.
type Dispatcher struct {
	cfg     Config
	jobs    *jobs.Service
	queues  *delayqueue.Queues
	sender  Sender
	log     *slog.Logger
	metrics *telemetry.Metrics
}

// New returns a Dispatcher.
func New(cfg Config, service *jobs.Service, sender Sender, log *slog.Logger,
	metrics *telemetry.Metrics) *Dispatcher {
	return &Dispatcher{
		cfg: cfg.withDefaults(), jobs: service, queues: service.Queues(), sender: sender, log: log, metrics: metrics,
	}
}

// Summary is the result of a run.
type Summary struct {
	Generation int64  `json:"generation"`
	Sent       int64  `json:"sent"`
	Refused    int64  `json:"refused"`
	Reason     string `json:"reason"` // why the run ended: "superseded" or "deadline"
}

// Run claims and sends jobs until a newer run has taken over or the context claiming ends. Then it
// finishes the jobs in flight. The end of the context work cancels them.
func (d *Dispatcher) Run(work, claiming context.Context) Summary {
	claiming, stop := context.WithCancel(claiming)
	defer stop()
	r := &run{Dispatcher: d, work: work, stop: stop, gate: newGate(), tally: newTally(d.metrics)}

	var loops sync.WaitGroup
	loops.Go(func() { r.watchStores(claiming) })
	loops.Go(func() { r.lead(claiming) })
	loops.Go(func() { r.serve(claiming) })
	loops.Go(func() { r.watchGauges(claiming) })
	loops.Wait()

	r.deliveries.Wait()
	r.tally.flush()
	return r.summary()
}

// run is the state of one [Dispatcher.Run].
type run struct {
	*Dispatcher
	work       context.Context // bounds sending and recording outcomes
	stop       context.CancelFunc
	gate       *gate
	tally      *tally
	deliveries sync.WaitGroup

	mu         sync.Mutex
	generation int64
	superseded bool
}

func (r *run) summary() Summary {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := Summary{
		Generation: r.generation, Reason: "deadline",
		Sent: r.tally.sent.Load(), Refused: r.tally.refused.Load(),
	}
	if r.superseded {
		s.Reason = "superseded"
	}
	return s
}

// lead gets a generation for the run, which is a number that is higher than that of every earlier
// run. It sends a heartbeat every Poll, and ends the run when a newer run has sent a heartbeat.
func (r *run) lead(ctx context.Context) {
	for ticks := newTicks(r.cfg.Poll); ticks.next(ctx); {
		r.beat(ctx)
		r.tally.flush()
	}
}

// beat sends a heartbeat, or ends the run if a newer run has sent one. It does nothing while Redis
// is unavailable: no newer run can take over then.
func (r *run) beat(ctx context.Context) {
	generation, err := r.takeOver(ctx)
	if err != nil {
		return
	}
	newest, err := r.queues.Newest(ctx)
	if err != nil {
		return
	}
	if newest > generation {
		r.mu.Lock()
		r.superseded = true
		r.mu.Unlock()
		r.stop()
		return
	}

	if !r.gate.isOpen() {
		return // a run that does not claim yet must not end an older run
	}
	if r.queues.Beat(ctx, generation) == nil {
		r.metrics.Emit(nil, telemetry.One("heartbeat", telemetry.Count, 1))
	}
}

// takeOver returns the generation of the run. The first successful call gets it from Redis.
func (r *run) takeOver(ctx context.Context) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.generation > 0 {
		return r.generation, nil
	}
	generation, err := r.queues.TakeOver(ctx)
	if err == nil {
		r.generation = generation
	}
	return generation, err
}
