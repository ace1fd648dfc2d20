// Package dynamolock keeps locks in DynamoDB, one item each: a consistent read, and a write on the
// condition that nobody wrote in between. What DynamoDB has acknowledged is in three availability
// zones: no failover loses a lease.
//
// A lease's end is stored as an instant of the clock of the function that granted it, and compared
// with the clock of the function that asks. So a lease counts as over only a margin after its end,
// which must be more than two functions' clocks differ by; the holder never counts on that margin.
// AWS keeps its hosts' clocks within milliseconds of each other (Amazon Time Sync). Where a clock
// is wrong by more than the margin, two may hold the lock for as long; the fence, which rises
// whatever the clocks say, still tells them apart.
package dynamolock

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/lock"
)

const (
	// Margin is how long after its end a lease still counts for others.
	Margin = 500 * time.Millisecond
	// callTimeout bounds one operation, so that a lock answers within 500 ms when DynamoDB is away.
	callTimeout = 350 * time.Millisecond
	// cleanupLimit bounds what a call that failed still does.
	cleanupLimit = 100 * time.Millisecond
	// rounds bounds how often an operation starts anew because of others' writes.
	rounds = 10
	// poll is how long a waiter pauses, at most.
	poll = 250 * time.Millisecond
	// keep is how long an item outlives its leases before DynamoDB's TTL may delete it. Its fence
	// is not needed after that: the next one is the clock, which has long passed it.
	keep = 24 * time.Hour
)

// Store keeps locks in one table. Waiters poll, and in no order. There are no semaphores.
type Store struct {
	client *dynamodb.Client
	table  string
	now    func() time.Time
}

// New makes a Store.
func New(client *dynamodb.Client, table string) *Store {
	return &Store{client: client, table: table, now: time.Now}
}

// TableInput describes the table: partition key "name"; "ttl" is the attribute for DynamoDB's TTL,
// in seconds.
func TableInput(table string) *dynamodb.CreateTableInput {
	return &dynamodb.CreateTableInput{
		TableName: aws.String(table), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("name"),
			AttributeType: types.ScalarAttributeTypeS}},
		KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("name"), KeyType: types.KeyTypeHash}},
	}
}

// Acquire takes a lock, waiting for it up to q.Wait. q must have been normalized. Errors:
// lock_held, store_unavailable, ctx's own.
func (s *Store) Acquire(ctx context.Context, q lock.Request) (lock.Lease, error) {
	started := time.Now()
	for {
		lease, err := s.once(ctx, q)
		lease.Waited = time.Since(started)
		left := q.Wait - lease.Waited
		if err == nil || fault.CodeOf(err) != fault.LockHeld || left <= 0 {
			return lease, err
		}
		timer := time.NewTimer(min(left, poll-mrand.N(poll/2)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return lock.Lease{}, errors.Join(err, ctx.Err())
		}
	}
}

func (s *Store) once(ctx context.Context, q lock.Request) (lock.Lease, error) {
	var got holder
	var again bool
	call := rand.Text()
	err := s.change(ctx, q.Name, func(r *record, now int64) (bool, error) {
		var in *obstacle
		wanted := holder{Token: q.Token, Call: call, Owner: q.Owner, Metadata: q.Metadata, Mode: q.Mode, Ends: now +
			q.TTL.Microseconds()}
		if got, again, in = r.acquire(wanted, now, Margin.Microseconds()); in != nil {
			detail := "somebody else holds it"
			if in.sameToken {
				detail = "the token holds it in the other mode: release it first"
			}
			remaining := max(time.Duration(in.remaining)*time.Microsecond, time.Millisecond)
			return false, fault.New(fault.LockHeld, "%s", detail).After(remaining).With("holder", in.owner)
		}
		return true, nil
	})
	if err != nil {
		if fault.CodeOf(err) != fault.LockHeld { // it may have been written all the same
			s.giveUp(ctx, q, call)
		}
		return lock.Lease{}, err
	}
	return lock.Lease{
		Name: q.Name, Token: q.Token, Mode: q.Mode, TTL: q.TTL, Fence: got.Fence, AcquiredAt: got.Acquired / 1000,
		ExpiresAt:  got.Ends / 1000,
		Reacquired: again, InUse: 1,
	}, nil
}

// giveUp cleans up on a context of its own. When DynamoDB is away, what was written ends with its
// TTL.
func (s *Store) giveUp(ctx context.Context, q lock.Request, call string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupLimit)
	defer cancel()
	_ = s.change(ctx, q.Name, func(r *record, _ int64) (bool, error) { return r.giveUp(q.Token, call), nil })
}

// Renew extends a lease. Errors: lock_not_held, store_unavailable.
func (s *Store) Renew(ctx context.Context, _ lock.Kind, name, token string, ttl time.Duration) (lock.Lease, error) {
	var got holder
	err := s.change(ctx, name, func(r *record, now int64) (bool, error) {
		var why reason
		got, why = r.renew(token, now, now+ttl.Microseconds(), Margin.Microseconds())
		return why == "", notHeld(why)
	})
	if err != nil {
		return lock.Lease{}, err
	}
	return lock.Lease{Name: name, Token: token, TTL: ttl, Fence: got.Fence, ExpiresAt: got.Ends / 1000}, nil
}

// Release gives a lock back and returns how long it was held. Errors: lock_not_held,
// store_unavailable.
func (s *Store) Release(ctx context.Context, _ lock.Kind, name, token string) (time.Duration, error) {
	var held int64
	err := s.change(ctx, name, func(r *record, now int64) (changed bool, err error) {
		var why reason
		held, changed, why = r.release(token, now, Margin.Microseconds())
		return changed, notHeld(why)
	})
	return time.Duration(held) * time.Microsecond, err
}

// Force takes it from everybody who holds it, and returns how many did. Errors: store_unavailable.
func (s *Store) Force(ctx context.Context, _ lock.Kind, name string) (int64, error) {
	var lost int64
	err := s.change(ctx, name, func(r *record, now int64) (bool, error) {
		lost = r.force(now, Margin.Microseconds())
		return lost > 0, nil
	})
	return lost, err
}

// Inspect reads who holds it. Who waits cannot be told. Errors: store_unavailable.
func (s *Store) Inspect(ctx context.Context, _ lock.Kind, name string) (lock.State, error) {
	out := lock.State{Name: name, Holders: []lock.Holder{}}
	err := s.change(ctx, name, func(r *record, now int64) (bool, error) {
		r.live(now, 0)
		for _, h := range r.Holders {
			out.Held, out.Mode = true, h.Mode
			out.Holders = append(out.Holders, lock.Holder{Owner: h.Owner, Fence: h.Fence, AcquiredAt: h.Acquired / 1000,
				ExpiresAt: h.Ends / 1000, Metadata: h.Metadata})
		}
		return false, nil
	})
	return out, err
}

func notHeld(why reason) error {
	switch why {
	case "":
		return nil
	case taken:
		return fault.New(fault.LockNotHeld, "somebody else holds it now: stop the work that it protects").With("reason",
			lock.HeldByOther)
	case forced:
		return fault.New(fault.LockNotHeld, "it was released by force: stop the work that it protects").With("reason",
			lock.Expired).With("forced", true)
	default:
		return fault.New(fault.LockNotHeld, "the lease has expired: stop the work that it protects").With("reason",
			lock.Expired)
	}
}

// errRaced says that somebody wrote in between.
var errRaced = errors.New("the item has changed")

// change reads an item, lets a function decide on it, and writes what it made of it, all anew when
// somebody else wrote in between. A write whose answer was lost is found by the next round: every
// decision is the same when it is made again by the same token.
func (s *Store) change(ctx context.Context, name string,
	decide func(r *record, now int64) (write bool, err error)) error {
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for range rounds {
		r, version, err := s.read(limited, name)
		if err != nil {
			return s.failed(ctx, err)
		}
		now := s.now().UnixMicro()
		write, err := decide(&r, now)
		if err != nil || !write {
			return err
		}
		if err = s.write(limited, name, r, version); err == nil {
			return nil
		}
		if !errors.Is(err, errRaced) {
			return s.failed(ctx, err)
		}
	}
	return fault.Unavailable("dynamodb", errors.New("too many others write this lock"))
}

func (s *Store) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("dynamodb call ended with its caller: %w", ctx.Err())
	}
	return fault.Unavailable("dynamodb", err)
}

func (s *Store) read(ctx context.Context, name string) (r record, version string, err error) {
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String(s.table), Key: key(name),
		ConsistentRead: aws.Bool(true)})
	if err != nil || len(out.Item) == 0 {
		return record{}, "", err
	}
	text, okText := out.Item["lock"].(*types.AttributeValueMemberS)
	number, okVersion := out.Item["version"].(*types.AttributeValueMemberN)
	if !okText || !okVersion {
		return record{}, "", errors.New("the item is no lock")
	}
	if err := json.Unmarshal([]byte(text.Value), &r); err != nil {
		return record{}, "", fmt.Errorf("error decoding a lock: %w", err)
	}
	return r, number.Value, nil
}

// write puts the next version in the place of the one that was read, or of none. The end of the
// last lease stands beside it, for people.
func (s *Store) write(ctx context.Context, name string, r record, before string) error {
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("error encoding a lock: %w", err)
	}
	version, _ := strconv.ParseInt(before, 10, 64)
	until := time.UnixMicro(max(r.until(0), s.now().UnixMicro()))
	in := &dynamodb.PutItemInput{
		TableName: aws.String(s.table),
		Item: map[string]types.AttributeValue{
			"name":    &types.AttributeValueMemberS{Value: name},
			"lock":    &types.AttributeValueMemberS{Value: string(text)},
			"version": number(version + 1), "held_until_ms": number(until.UnixMilli()),
			"ttl": number(until.Add(keep).Unix()),
		},
		ConditionExpression: aws.String("attribute_not_exists(version)"),
	}
	if before != "" {
		in.ConditionExpression = aws.String("version = :before")
		in.ExpressionAttributeValues = map[string]types.AttributeValue{":before": &types.AttributeValueMemberN{Value: before}}
	}
	_, err = s.client.PutItem(ctx, in)
	if raced := (*types.ConditionalCheckFailedException)(nil); errors.As(err, &raced) {
		return errRaced
	}
	return err
}

func key(name string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"name": &types.AttributeValueMemberS{Value: name}}
}

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}
