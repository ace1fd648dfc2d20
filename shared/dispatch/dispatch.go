// Package dispatch moves due jobs to SQS. One run works until a newer run has taken over, so that
// invocations may come late, twice or not at all: there is no gap and no early stop.
package dispatch

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/delayqueue/outbox"
	"github.com/sluicehq/sluice/shared/delayqueue/sqssender"
	"github.com/sluicehq/sluice/shared/redisconn"
	"github.com/sluicehq/sluice/shared/telemetry"
)

// Store is where due jobs are claimed. [delayqueue.Queues] is one.
type Store interface {
	Register(ctx context.Context) error
	AllShards() int
	TakeOver(ctx context.Context) (int64, error)
	Newest(ctx context.Context) (int64, error)
	Beat(ctx context.Context, generation int64) error
	Wakeups(ctx context.Context) <-chan delayqueue.Shard
	Ping(ctx context.Context) error
	Claim(ctx context.Context, queue string, shard, most int, lease time.Duration) (delayqueue.Claims, error)
	Accept(ctx context.Context, queue string, shard int, jobs []delayqueue.Claimed) ([]bool, error)
	Requeue(ctx context.Context, queue string, shard int, refused []delayqueue.Refused) ([]bool, error)
	Maintain(ctx context.Context, queue string, shard, most int) (delayqueue.Maintained, error)
	Enqueue(ctx context.Context, queue string, jobs []delayqueue.Job) ([]delayqueue.Enqueued, []error)
	RecordSent(ctx context.Context, queue string, j delayqueue.Job, sentAt time.Time) error
	Stats(ctx context.Context, queue string) (delayqueue.Stats, error)
	RedisInfo(ctx context.Context) (redisconn.Info, error)
}

// Sender sends claimed jobs. [sqssender.Sender] is one.
type Sender interface {
	Send(ctx context.Context, queue, url string, jobs []delayqueue.Claimed) []sqssender.Result
}

// Config tunes a Dispatcher.
type Config struct {
	// Queues maps each queue to the URL of its SQS queue.
	Queues map[string]string
	// ClaimSize is the most jobs that one claim takes. Default 500.
	ClaimSize int
	// Lease is how long a dispatcher may take for what it claimed. Default 30 s.
	Lease time.Duration
	// Poll is the longest that a shard is not looked at. Default 1 s.
	Poll time.Duration
	// InFlight is how many claims of one shard may be under way at once; with the sender's bound it
	// keeps one queue's backlog from starving the others. Default 4.
	InFlight int
	// OutboxPoll is how often the outbox is looked at while Redis is up. Default 5 s.
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

// Dispatcher is what runs of it share. It is safe for concurrent runs.
type Dispatcher struct {
	cfg     Config
	store   Store
	outbox  *outbox.Outbox // nil when the deployment has none
	sender  Sender
	log     *slog.Logger
	metrics *telemetry.Metrics
}

// New makes a Dispatcher.
func New(cfg Config, store Store, box *outbox.Outbox, sender Sender, log *slog.Logger,
	metrics *telemetry.Metrics) *Dispatcher {
	return &Dispatcher{cfg: cfg.withDefaults(), store: store, outbox: box, sender: sender, log: log, metrics: metrics}
}

// Summary is what a run did.
type Summary struct {
	Generation int64  `json:"generation"`
	Sent       int64  `json:"sent"`
	Refused    int64  `json:"refused"`
	Reason     string `json:"reason"` // why it ended: "superseded" or "deadline"
}

// Run works until a newer run has taken over, or until claiming ends; then it finishes what is in
// flight, for which work leaves it time.
func (d *Dispatcher) Run(work, claiming context.Context) Summary {
	claiming, stop := context.WithCancel(claiming)
	defer stop()
	r := &run{Dispatcher: d, work: work, stop: stop, gate: newGate(), tally: newTally(d.metrics)}
	var wait sync.WaitGroup
	wait.Go(func() { r.watchOutbox(claiming) })
	wait.Go(func() { r.lead(claiming) })
	wait.Go(func() { r.serve(claiming) })
	wait.Go(func() { r.watchGauges(claiming) })
	wait.Wait()
	r.deliveries.Wait()
	r.tally.flush()
	return r.summary()
}

// run is one run.
type run struct {
	*Dispatcher
	work       context.Context // ends with the process' time
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
	s := Summary{Generation: r.generation, Reason: "deadline", Sent: r.tally.sent.Load(),
		Refused: r.tally.refused.Load()}
	if r.superseded {
		s.Reason = "superseded"
	}
	return s
}

// lead takes over, beats each second, and ends the run when a newer one is at work.
func (r *run) lead(ctx context.Context) {
	for tick := newTicks(r.cfg.Poll); tick.next(ctx); {
		r.beat(ctx)
		r.tally.flush()
	}
}

func (r *run) beat(ctx context.Context) {
	r.mu.Lock()
	mine := r.generation
	r.mu.Unlock()
	if mine == 0 {
		taken, err := r.store.TakeOver(ctx)
		if err != nil {
			return // Redis is away: nobody can take over from us either
		}
		mine = taken
		r.mu.Lock()
		r.generation = mine
		r.mu.Unlock()
	}
	newest, err := r.store.Newest(ctx)
	if err != nil {
		return
	}
	if newest > mine {
		r.mu.Lock()
		r.superseded = true
		r.mu.Unlock()
		r.stop()
		return
	}
	if r.gate.isOpen() { // only a dispatcher that works may tell the one before it to stop
		if r.store.Beat(ctx, mine) == nil {
			r.metrics.Emit(nil, telemetry.One("heartbeat", telemetry.Count, 1))
		}
	}
}
