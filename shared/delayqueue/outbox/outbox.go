// Package outbox keeps jobs in DynamoDB: jobs that were enqueued while Redis was unavailable, and a
// copy of each durable job.
//
// A job has two items. The job item holds the job. Its key contains the due time, by which
// dispatchers find it. The pointer item has the queue and the job's ID as its key, and holds the
// key of the job item. It makes the ID unique in its queue, and a lookup by ID reads it first.
//
// A process must claim a job item before it sends the job or moves it to Redis. Each job item has a
// fence, which every write increments. A write succeeds only if the fence still has the value that
// the writer read. A writer whose claim was taken over therefore gets [ErrClaimLost] and changes
// nothing. There are two kinds of claim:
//
//   - A claim to send is exclusive until its lease ends, because SQS may accept the job until then.
//   - Another process may take over a claim to move at any time, because moving is idempotent:
//     Redis ignores a second job with the same ID.
//
// The table also holds the pauses of queues, because Redis may lose pauses.
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

// Outbox stores jobs in one DynamoDB table. It is safe for concurrent use.
type Outbox struct {
	client *dynamodb.Client
	table  string
	now    func() time.Time
}

// New returns an Outbox that uses a table with the schema of [TableInput].
func New(client *dynamodb.Client, table string) *Outbox {
	return &Outbox{client: client, table: table, now: time.Now}
}

// TableInput describes the table: partition key "pk", sort key "sk". The caller must also enable
// DynamoDB's TTL on the attribute "ttl".
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
