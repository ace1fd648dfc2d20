package dynamolock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/lock"
)

const (
	// maxRounds is the maximum number of attempts of an update.
	maxRounds = 10
	// retention is the time from the end of the last lease until DynamoDB's TTL may delete the
	// item. The fence in a deleted item is not needed: the next fence is at least the current time
	// in µs.
	retention = 24 * time.Hour
)

// Attributes of an item.
const (
	attrName    = "name"          // partition key: the lock's name
	attrLock    = "lock"          // the record as JSON
	attrVersion = "version"       // incremented by each write
	attrHeld    = "held_until_ms" // end of the last lease, for people who read the table
	attrTTL     = "ttl"           // for DynamoDB's TTL, in seconds
)

// TableInput returns the definition of the table: partition key "name", billed per request. Enable
// DynamoDB's TTL on the attribute "ttl".
func TableInput(table string) *dynamodb.CreateTableInput {
	return &dynamodb.CreateTableInput{
		TableName:   aws.String(table),
		BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String(attrName), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String(attrName), KeyType: types.KeyTypeHash},
		},
	}
}

// errConflict reports that another writer changed the item after it was read.
var errConflict = errors.New("the item has changed")

// update reads a lock, passes it to the function change, and writes the lock if change returns
// true. If another writer changed the item after the read, update reads again. If the SDK retries a
// write because its reply was lost, the retry conflicts with the first write. Then update reads the
// written lock, and change makes the same decision for the same token.
func (s *Store) update(ctx context.Context, key lock.Key,
	change func(r *record, now time.Time) (write bool, err error),
) error {
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	for range maxRounds {
		r, version, err := s.read(limited, key)
		if err != nil {
			return classify(ctx, err)
		}
		write, err := change(&r, s.now().Truncate(time.Microsecond).UTC())
		if err != nil || !write {
			return err
		}
		err = s.write(limited, key, r, version)
		if err == nil {
			return nil
		}
		if !errors.Is(err, errConflict) {
			return classify(ctx, err)
		}
	}
	return fault.Unavailable("dynamodb", errors.New("too many concurrent writers of this lock"))
}

// classify returns ctx's error if ctx has ended, and a store_unavailable error otherwise.
func classify(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("the caller ended the dynamodb call: %w", ctx.Err())
	}
	return fault.Unavailable("dynamodb", err)
}

// read returns a lock and its version, or an empty record and version 0 if there is no item.
func (s *Store) read(ctx context.Context, key lock.Key) (r record, version int64, err error) {
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:      aws.String(s.table),
		Key:            map[string]types.AttributeValue{attrName: text(key.Name)},
		ConsistentRead: aws.Bool(true),
	})
	if err != nil || len(out.Item) == 0 {
		return record{}, 0, err
	}

	content, okContent := out.Item[attrLock].(*types.AttributeValueMemberS)
	versionText, okVersion := out.Item[attrVersion].(*types.AttributeValueMemberN)
	if !okContent || !okVersion {
		return record{}, 0, fmt.Errorf("error reading the lock %q: its item has an unexpected format", key.Name)
	}
	if err := json.Unmarshal([]byte(content.Value), &r); err != nil {
		return record{}, 0, fmt.Errorf("error decoding the lock %q: %w", key.Name, err)
	}
	version, err = strconv.ParseInt(versionText.Value, 10, 64)
	if err != nil {
		return record{}, 0, fmt.Errorf("error decoding the version of the lock %q: %w", key.Name, err)
	}
	return r, version, nil
}

// write replaces the item if its version is still the version that was read. Otherwise it returns
// errConflict.
func (s *Store) write(ctx context.Context, key lock.Key, r record, version int64) error {
	content, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("error encoding the lock %q: %w", key.Name, err)
	}

	heldUntil := s.now()
	if last := r.lastEnd(); last.After(heldUntil) {
		heldUntil = last
	}
	in := &dynamodb.PutItemInput{
		TableName: aws.String(s.table),
		Item: map[string]types.AttributeValue{
			attrName:    text(key.Name),
			attrLock:    text(string(content)),
			attrVersion: number(version + 1),
			attrHeld:    number(heldUntil.UnixMilli()),
			attrTTL:     number(heldUntil.Add(retention).Unix()),
		},
		ConditionExpression: aws.String("attribute_not_exists(version)"),
	}
	if version > 0 {
		in.ConditionExpression = aws.String("version = :version")
		in.ExpressionAttributeValues = map[string]types.AttributeValue{":version": number(version)}
	}

	_, err = s.client.PutItem(ctx, in)
	if _, conflict := errors.AsType[*types.ConditionalCheckFailedException](err); conflict {
		return errConflict
	}
	return err
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}
