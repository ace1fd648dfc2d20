// Package dynamopolicy keeps limiter policies in DynamoDB: one item each, with a version that every write checks.
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
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("name"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("name"), KeyType: types.KeyTypeHash}},
	}
}

// Get reads a policy, strongly consistent. Errors: policy_not_found, store_unavailable.
func (s *Store) Get(ctx context.Context, name string) (policy.Stored, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String(s.table), Key: key(name), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return policy.Stored{}, fault.Unavailable("policy", err)
	}
	if len(out.Item) == 0 {
		return policy.Stored{}, fault.New(fault.PolicyNotFound, "there is no policy %q", name)
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

// Put writes a normalized policy and reports whether it was new. Errors: precondition_failed, store_unavailable.
func (s *Store) Put(ctx context.Context, p policy.Policy, when Condition) (stored policy.Stored, created bool, err error) {
	for range attempts {
		var before int64
		if before, err = s.check(ctx, p.Name, when); err != nil {
			return policy.Stored{}, false, err
		}
		stored = policy.Stored{Policy: p, Version: before + 1, UpdatedAt: instant.Format(s.now().UnixMilli())}
		if err = s.write(ctx, stored, before); err == nil {
			return stored, before == 0, nil
		}
		if fault.CodeOf(err) != fault.PreconditionFailed {
			return policy.Stored{}, false, err
		}
	}
	return policy.Stored{}, false, err
}

// Delete removes a policy. Errors: policy_not_found, precondition_failed, store_unavailable.
func (s *Store) Delete(ctx context.Context, name string, when Condition) error {
	var err error
	for range attempts {
		var before int64
		if before, err = s.check(ctx, name, when); err != nil {
			return err
		}
		if before == 0 {
			return fault.New(fault.PolicyNotFound, "there is no policy %q", name)
		}
		if err = s.remove(ctx, name, before); fault.CodeOf(err) != fault.PreconditionFailed {
			return err
		}
	}
	return err
}

// check reads the version that is there, 0 for none, and demands the condition of it. The write that follows is conditional on that version.
func (s *Store) check(ctx context.Context, name string, when Condition) (int64, error) {
	current, err := s.Get(ctx, name)
	absent := fault.CodeOf(err) == fault.PolicyNotFound
	switch {
	case err != nil && !absent:
		return 0, err
	case absent && when.ETag != "":
		return 0, fault.New(fault.PreconditionFailed, "there is no policy %q to match If-Match", name)
	case !absent && when.Absent:
		return 0, fault.New(fault.PreconditionFailed, "there is a policy %q already (If-None-Match: *)", name)
	case !absent && when.ETag != "" && when.ETag != "*" && when.ETag != current.ETag():
		return 0, fault.New(fault.PreconditionFailed, "the policy %q has changed: read it again", name).With("etag", current.ETag())
	}
	return current.Version, nil
}

func (s *Store) write(ctx context.Context, p policy.Stored, before int64) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	text, err := json.Marshal(p.Policy)
	if err != nil {
		return fmt.Errorf("error encoding a policy: %w", err)
	}
	input := &dynamodb.PutItemInput{TableName: aws.String(s.table), Item: map[string]types.AttributeValue{
		"name": str(p.Name), "policy": str(string(text)), "version": num(p.Version), "updated_at": str(p.UpdatedAt),
	}}
	if before == 0 {
		input.ConditionExpression, input.ExpressionAttributeNames = aws.String("attribute_not_exists(#n)"), map[string]string{"#n": "name"}
	} else {
		input.ConditionExpression, input.ExpressionAttributeNames = aws.String("#v = :before"), map[string]string{"#v": "version"}
		input.ExpressionAttributeValues = map[string]types.AttributeValue{":before": num(before)}
	}
	_, err = s.client.PutItem(ctx, input)
	return failure(err, p.Name)
}

func (s *Store) remove(ctx context.Context, name string, before int64) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := s.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName: aws.String(s.table), Key: key(name), ConditionExpression: aws.String("#v = :before"),
		ExpressionAttributeNames: map[string]string{"#v": "version"}, ExpressionAttributeValues: map[string]types.AttributeValue{":before": num(before)},
	})
	return failure(err, name)
}

func failure(err error, name string) error {
	var failed *types.ConditionalCheckFailedException
	switch {
	case err == nil:
		return nil
	case errors.As(err, &failed):
		return fault.New(fault.PreconditionFailed, "the policy %q was changed meanwhile: read it again", name)
	default:
		return fault.Unavailable("policy", err)
	}
}

// List reads a page of up to limit policies, in no order, from an opaque cursor ("" at first); next is "" on the last page.
// Errors: invalid_request for a bad cursor, store_unavailable.
func (s *Store) List(ctx context.Context, limit int32, cursor string) (page []policy.Stored, next string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	input := &dynamodb.ScanInput{TableName: aws.String(s.table), Limit: aws.Int32(limit)}
	if cursor != "" {
		name, err := base64.RawURLEncoding.DecodeString(cursor)
		if err != nil || !fault.ValidName(string(name)) {
			return nil, "", fault.Invalid("cursor", "is not a cursor of this listing")
		}
		input.ExclusiveStartKey = key(string(name))
	}
	out, err := s.client.Scan(ctx, input)
	if err != nil {
		return nil, "", fault.Unavailable("policy", err)
	}
	for _, item := range out.Items {
		p, err := decode(item)
		if err != nil {
			return nil, "", err
		}
		page = append(page, p)
	}
	if last, ok := out.LastEvaluatedKey["name"].(*types.AttributeValueMemberS); ok {
		next = base64.RawURLEncoding.EncodeToString([]byte(last.Value))
	}
	return page, next, nil
}

// Ping tells whether the table answers.
func (s *Store) Ping(ctx context.Context) error {
	_, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String(s.table), Key: key("sluice-health")})
	if err != nil {
		return fault.Unavailable("policy", err)
	}
	return nil
}

func decode(item map[string]types.AttributeValue) (policy.Stored, error) {
	var p policy.Stored
	text, _ := item["policy"].(*types.AttributeValueMemberS)
	version, _ := item["version"].(*types.AttributeValueMemberN)
	updated, _ := item["updated_at"].(*types.AttributeValueMemberS)
	if text == nil || version == nil || updated == nil {
		return p, errors.New("a policy item lacks an attribute")
	}
	if err := json.Unmarshal([]byte(text.Value), &p.Policy); err != nil {
		return p, fmt.Errorf("error decoding a policy: %w", err)
	}
	n, err := strconv.ParseInt(version.Value, 10, 64)
	if err != nil {
		return p, fmt.Errorf("error decoding a policy's version: %w", err)
	}
	p.Version, p.UpdatedAt = n, updated.Value
	return p, nil
}

func key(name string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"name": str(name)}
}

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func num(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}
