// Package outbox keeps jobs in DynamoDB: jobs that were enqueued while Redis was unavailable, and a
// copy of each durable job.
//
// A job has two items. The job item holds its content and is filed under its due time, where
// dispatchers find it. The pointer item is filed under the job's ID and holds the job item's key,
// so that an ID exists once and a job can be found by its ID.
//
// A process must claim a job item before it sends the job or moves it to Redis. Every write carries
// the fence that the writer last saw and raises it, so a writer whose claim another process has
// taken over gets [ErrClaimLost] and changes nothing. Two kinds of claim exist:
//
//   - A claim to send holds until its lease ends: while SQS may accept the job, nobody else may take
//     the item.
//   - A claim to move may be taken over at any time, because moving is idempotent: Redis keeps the
//     first job of an ID.
//
// The table also holds the pauses of queues, because Redis may lose them.
package outbox

import (
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// ErrClaimLost reports that another process claimed, changed or removed the item after it was read.
var ErrClaimLost = errors.New("another process has claimed, changed or removed the outbox item")

// Outbox is one DynamoDB table. It is safe for concurrent use.
type Outbox struct {
	client *dynamodb.Client
	table  string
	now    func() time.Time
}

// New returns an Outbox on a table that has the schema of [TableInput].
func New(client *dynamodb.Client, table string) *Outbox {
	return &Outbox{client: client, table: table, now: time.Now}
}

// TableInput describes the table: partition key "pk", sort key "sk". DynamoDB's TTL is to be
// enabled on the attribute "ttl".
func TableInput(table string) *dynamodb.CreateTableInput {
	return &dynamodb.CreateTableInput{
		TableName: aws.String(table), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String("sk"), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash},
			{AttributeName: aws.String("sk"), KeyType: types.KeyTypeRange},
		},
	}
}
