// Package dynamopolicy stores policies in DynamoDB: one item for each policy, with a version that
// every write checks.
//
// A deleted policy leaves an item with its name and version. Versions therefore increase even when
// a policy is deleted and created again, and an old entity tag never matches the new policy.
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

// Store stores policies in one table.
type Store struct {
	client *dynamodb.Client
	table  string
	now    func() time.Time
}

// New returns a store that uses the table. The table must have the partition key that [TableInput]
// defines.
func New(client *dynamodb.Client, table string) *Store {
	return &Store{client: client, table: table, now: time.Now}
}

// TableInput returns the definition of the table: its partition key is "name".
func TableInput(table string) *dynamodb.CreateTableInput {
	return &dynamodb.CreateTableInput{
		TableName: aws.String(table), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("name"),
			AttributeType: types.ScalarAttributeTypeS}},
		KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("name"), KeyType: types.KeyTypeHash}},
	}
}

// Get reads a policy with strong consistency. Errors: [policy.ErrNotFound],
// [policy.ErrUnavailable].
func (s *Store) Get(ctx context.Context, name string) (policy.Stored, error) {
	r, err := s.read(ctx, name)
	if err == nil && !r.exists {
		err = notFound(name)
	}

	return r.policy, err
}

// record is an item: a policy, or the version of a deleted policy.
type record struct {
	policy  policy.Stored
	version int64 // 0 if there is no item
	exists  bool  // false if there is no item, or if the policy is deleted
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

// Condition is a precondition of a write. The zero value writes unconditionally.
type Condition struct {
	// ETag is the entity tag that the stored policy must have. "*" matches every stored policy.
	ETag string
	// Absent requires that no policy with this name is stored.
	Absent bool
}

// attempts is the maximum number of times that Put and Delete try to write. An attempt fails if the
// policy is written concurrently.
const attempts = 8

// Put normalizes and writes a policy, and reports whether it was created. Errors:
// [policy.ErrInvalid], [policy.ErrPreconditionFailed], [policy.ErrUnavailable].
func (s *Store) Put(
	ctx context.Context, p policy.Policy, when Condition,
) (stored policy.Stored, created bool, err error) {
	if p, err = p.Normalize(); err != nil {
		return policy.Stored{}, false, err
	}
	text, err := json.Marshal(p.Document())
	if err != nil {
		return policy.Stored{}, false, fmt.Errorf("error encoding a policy: %w", err)
	}

	for range attempts {
		before, err := s.check(ctx, p.Name, when)
		if err != nil {
			return policy.Stored{}, false, err
		}
		now := s.now().UTC().Truncate(time.Millisecond)
		stored = policy.Stored{Policy: p, Version: before.version + 1, UpdatedAt: now}
		err = s.write(ctx, p.Name, before.version,
			map[string]types.AttributeValue{"policy": str(string(text)), "updated_at": str(instant.Format(now))})
		if err == nil {
			return stored, !before.exists, nil
		}
		if !errors.Is(err, policy.ErrPreconditionFailed) {
			return policy.Stored{}, false, err
		}
	}

	return policy.Stored{}, false, changed(p.Name)
}

// Delete deletes a policy. Errors: [policy.ErrNotFound], [policy.ErrPreconditionFailed],
// [policy.ErrUnavailable].
func (s *Store) Delete(ctx context.Context, name string, when Condition) error {
	for range attempts {
		before, err := s.check(ctx, name, when)
		if err != nil {
			return err
		}
		if !before.exists {
			return notFound(name)
		}
		deleted := map[string]types.AttributeValue{"deleted_at": str(instant.Format(s.now()))}
		if err = s.write(ctx, name, before.version, deleted); !errors.Is(err, policy.ErrPreconditionFailed) {
			return err
		}
	}
	return changed(name)
}

// check reads the current item and checks the condition. The subsequent write must require the
// version that check returns. It then fails if the policy was written in the meantime.
func (s *Store) check(ctx context.Context, name string, when Condition) (record, error) {
	current, err := s.read(ctx, name)
	switch {
	case err != nil:
		return record{}, err
	case !current.exists && when.ETag != "":
		return record{}, fault.New(fault.PreconditionFailed, "the policy %q does not exist (If-Match)", name)
	case current.exists && when.Absent:
		return record{}, fault.New(fault.PreconditionFailed, "the policy %q already exists (If-None-Match: *)", name)
	case current.exists && when.ETag != "" && when.ETag != "*" && when.ETag != current.policy.ETag():
		return record{}, fault.New(fault.PreconditionFailed, "the policy %q has changed; read it again",
			name).With("etag", current.policy.ETag())
	}
	return current, nil
}

// write stores an item and sets its version to before + 1. It fails if the stored version is not
// equal to before. In this comparison, the version is 0 if no item is stored.
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
		return changed(name)
	default:
		return fault.Unavailable("policy", err)
	}
}

func notFound(name string) error {
	return fault.New(fault.PolicyNotFound, "no policy has the name %q", name)
}

func changed(name string) error {
	return fault.New(fault.PreconditionFailed, "the policy %q was changed concurrently; read it again", name)
}

// MaxPage is the maximum limit of [Store.List].
const MaxPage = 100

// List reads a page of policies in arbitrary order. The limit is the maximum number of policies in
// the page: 1 to [MaxPage]. The cursor is "" for the first page. For each other page, it is the
// string next that List returned with the previous page. On the last page, next is "". Errors:
// [policy.ErrInvalid] with the field "limit" or "cursor", [policy.ErrUnavailable].
func (s *Store) List(ctx context.Context, limit int, cursor string) (page []policy.Stored, next string, err error) {
	if limit < 1 || limit > MaxPage {
		return nil, "", fault.Invalid("limit", "must be 1 to %d", MaxPage)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	input := &dynamodb.ScanInput{TableName: aws.String(s.table)}
	if cursor != "" {
		name, err := base64.RawURLEncoding.DecodeString(cursor)
		if err != nil || !fault.ValidName(string(name)) {
			return nil, "", fault.Invalid("cursor", "must be the next_cursor of the previous page")
		}
		input.ExclusiveStartKey = key(string(name))
	}
	for { // repeats because the items of deleted policies are skipped
		input.Limit = aws.Int32(int32(limit - len(page)))
		out, err := s.client.Scan(ctx, input)
		if err != nil {
			return nil, "", fault.Unavailable("policy", err)
		}
		for _, item := range out.Items {
			r, err := decode(item)
			if err != nil {
				return nil, "", err
			}
			if r.exists {
				page = append(page, r.policy)
			}
		}
		last, more := out.LastEvaluatedKey["name"].(*types.AttributeValueMemberS)
		if !more {
			return page, "", nil
		}
		if len(page) >= limit {
			return page, base64.RawURLEncoding.EncodeToString([]byte(last.Value)), nil
		}
		input.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

// Ping returns nil if the table answers. Errors: [policy.ErrUnavailable].
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
		return record{}, errors.New("error decoding a policy: the version is missing")
	}
	n, err := strconv.ParseInt(version.Value, 10, 64)
	if err != nil {
		return record{}, fmt.Errorf("error decoding the version of a policy: %w", err)
	}
	if _, deleted := item["deleted_at"]; deleted {
		return record{version: n}, nil
	}
	text, ok := item["policy"].(*types.AttributeValueMemberS)
	updated, dated := item["updated_at"].(*types.AttributeValueMemberS)
	if !ok || !dated {
		return record{}, errors.New("error decoding a policy: policy or updated_at is missing")
	}

	var d policy.Document
	if err := json.Unmarshal([]byte(text.Value), &d); err != nil {
		return record{}, fmt.Errorf("error decoding a policy: %w", err)
	}
	at, err := instant.Parse(updated.Value)
	if err != nil {
		return record{}, fmt.Errorf("error decoding the updated_at of a policy: %w", err)
	}

	stored := policy.Stored{Policy: d.Policy(), Version: n, UpdatedAt: at}

	return record{version: n, exists: true, policy: stored}, nil
}

func key(name string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"name": str(name)}
}

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func num(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}
