// Package dynamopolicy keeps limiter policies in DynamoDB: one item each, with a version that every
// write checks.
//
// A deleted policy leaves its name and version behind, so that versions rise also when it is made
// anew: an entity tag from before never fits.
package dynamopolicy

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/instant"
	"github.com/sluicehq/sluice/shared/policy"
)

// callTimeout bounds one call to DynamoDB, retries included.
const callTimeout = 2 * time.Second

// Store keeps policies in one table.
type Store struct {
	client *dynamodb.Client
	table  string
	now    func() time.Time
}

// New makes a Store.
func New(client *dynamodb.Client, table string) *Store {
	return &Store{client: client, table: table, now: time.Now}
}

// TableInput describes the table: partition key "name".
func TableInput(table string) *dynamodb.CreateTableInput {
	return &dynamodb.CreateTableInput{
		TableName: aws.String(table), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("name"),
			AttributeType: types.ScalarAttributeTypeS}},
		KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("name"), KeyType: types.KeyTypeHash}},
	}
}

// Get reads a policy, strongly consistent. Errors: policy_not_found, store_unavailable.
func (s *Store) Get(ctx context.Context, name string) (policy.Stored, error) {
	r, err := s.read(ctx, name)
	if err == nil && !r.present {
		err = fault.New(fault.PolicyNotFound, "there is no policy %q", name)
	}
	return r.policy, err
}

// record is an item: a policy, or what one that was deleted left behind. Without an item the
// version is 0.
type record struct {
	policy  policy.Stored
	version int64
	present bool
}

func (s *Store) read(ctx context.Context, name string) (record, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String(s.table), Key: key(name),
		ConsistentRead: aws.Bool(true)})
	if err != nil {
		return record{}, fault.Unavailable("policy", err)
	}
	if len(out.Item) == 0 {
		return record{}, nil
	}
	return decode(out.Item)
}

// Condition is what a write demands of the policy that is there.
type Condition struct {
	// ETag is the entity tag that it must have; "" demands none, "*" any.
	ETag string
	// Absent demands that there is none.
	Absent bool
}

// attempts bounds how often a write without a condition starts anew because of others' writes.
const attempts = 8

// Put writes a normalized policy and reports whether it was new. Errors: precondition_failed,
// store_unavailable.
func (s *Store) Put(ctx context.Context, p policy.Policy,
	when Condition) (stored policy.Stored, created bool, err error) {
	for range attempts {
		before, err := s.check(ctx, p.Name, when)
		if err != nil {
			return policy.Stored{}, false, err
		}
		stored = policy.Stored{Policy: p, Version: before.version + 1, UpdatedAt: instant.Format(s.now())}
		text, err := json.Marshal(p)
		if err != nil {
			return policy.Stored{}, false, fmt.Errorf("error encoding a policy: %w", err)
		}
		err = s.write(ctx, p.Name, before.version,
			map[string]types.AttributeValue{"policy": str(string(text)), "updated_at": str(stored.UpdatedAt)})
		if err == nil {
			return stored, !before.present, nil
		}
		if fault.CodeOf(err) != fault.PreconditionFailed {
			return policy.Stored{}, false, err
		}
	}
	return policy.Stored{}, false, busy(p.Name)
}

// Delete removes a policy. Errors: policy_not_found, precondition_failed, store_unavailable.
func (s *Store) Delete(ctx context.Context, name string, when Condition) error {
	for range attempts {
		before, err := s.check(ctx, name, when)
		if err != nil {
			return err
		}
		if !before.present {
			return fault.New(fault.PolicyNotFound, "there is no policy %q", name)
		}
		deleted := map[string]types.AttributeValue{"deleted_at": str(instant.Format(s.now()))}
		if err = s.write(ctx, name, before.version, deleted); fault.CodeOf(err) != fault.PreconditionFailed {
			return err
		}
	}
	return busy(name)
}

// check reads what is there and demands the condition of it. The write that follows is conditional
// on the version that was read.
func (s *Store) check(ctx context.Context, name string, when Condition) (record, error) {
	current, err := s.read(ctx, name)
	switch {
	case err != nil:
		return record{}, err
	case !current.present && when.ETag != "":
		return record{}, fault.New(fault.PreconditionFailed, "there is no policy %q to match If-Match", name)
	case current.present && when.Absent:
		return record{}, fault.New(fault.PreconditionFailed, "there is a policy %q already (If-None-Match: *)", name)
	case current.present && when.ETag != "" && when.ETag != "*" && when.ETag != current.policy.ETag():
		return record{}, fault.New(fault.PreconditionFailed, "the policy %q has changed: read it again",
			name).With("etag", current.policy.ETag())
	}
	return current, nil
}

// write puts an item of the next version in the place of one whose version is before.
func (s *Store) write(ctx context.Context, name string, before int64, item map[string]types.AttributeValue) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	item["name"], item["version"] = str(name), num(before+1)
	input := &dynamodb.PutItemInput{TableName: aws.String(s.table), Item: item}
	if before == 0 {
		input.ConditionExpression, input.ExpressionAttributeNames = aws.String("attribute_not_exists(#n)"),
			map[string]string{"#n": "name"}
	} else {
		input.ConditionExpression, input.ExpressionAttributeNames = aws.String("#v = :before"),
			map[string]string{"#v": "version"}
		input.ExpressionAttributeValues = map[string]types.AttributeValue{":before": num(before)}
	}
	_, err := s.client.PutItem(ctx, input)
	var failed *types.ConditionalCheckFailedException
	switch {
	case err == nil:
		return nil
	case errors.As(err, &failed):
		return busy(name)
	default:
		return fault.Unavailable("policy", err)
	}
}

func busy(name string) error {
	return fault.New(fault.PreconditionFailed, "the policy %q was changed meanwhile: read it again", name)
}

// List reads a page of up to limit policies, in no order, from an opaque cursor ("" at first); next
// is "" on the last page. Errors: invalid_request for a bad cursor, store_unavailable.
func (s *Store) List(ctx context.Context, limit int32, cursor string) (page []policy.Stored, next string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	input := &dynamodb.ScanInput{TableName: aws.String(s.table)}
	if cursor != "" {
		name, err := base64.RawURLEncoding.DecodeString(cursor)
		if err != nil || !fault.ValidName(string(name)) {
			return nil, "", fault.Invalid("cursor", "is not a cursor of this listing")
		}
		input.ExclusiveStartKey = key(string(name))
	}
	for { // what deleted policies left behind makes room for more
		input.Limit = aws.Int32(limit - int32(len(page)))
		out, err := s.client.Scan(ctx, input)
		if err != nil {
			return nil, "", fault.Unavailable("policy", err)
		}
		for _, item := range out.Items {
			r, err := decode(item)
			if err != nil {
				return nil, "", err
			}
			if r.present {
				page = append(page, r.policy)
			}
		}
		last, more := out.LastEvaluatedKey["name"].(*types.AttributeValueMemberS)
		if !more {
			return page, "", nil
		}
		if int32(len(page)) >= limit {
			return page, base64.RawURLEncoding.EncodeToString([]byte(last.Value)), nil
		}
		input.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

// Ping tells whether the table answers.
func (s *Store) Ping(ctx context.Context) error {
	_, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String(s.table), Key: key("sluice-health")})
	if err != nil {
		return fault.Unavailable("policy", err)
	}
	return nil
}

func decode(item map[string]types.AttributeValue) (record, error) {
	version, ok := item["version"].(*types.AttributeValueMemberN)
	if !ok {
		return record{}, errors.New("a policy item lacks its version")
	}
	n, err := strconv.ParseInt(version.Value, 10, 64)
	if err != nil {
		return record{}, fmt.Errorf("error decoding a policy's version: %w", err)
	}
	if _, deleted := item["deleted_at"]; deleted {
		return record{version: n}, nil
	}
	text, ok := item["policy"].(*types.AttributeValueMemberS)
	updated, dated := item["updated_at"].(*types.AttributeValueMemberS)
	if !ok || !dated {
		return record{}, errors.New("a policy item lacks an attribute")
	}
	r := record{version: n, present: true, policy: policy.Stored{Version: n, UpdatedAt: updated.Value}}
	if err := json.Unmarshal([]byte(text.Value), &r.policy.Policy); err != nil {
		return record{}, fmt.Errorf("error decoding a policy: %w", err)
	}
	return r, nil
}

func key(name string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"name": str(name)}
}

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func num(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}
