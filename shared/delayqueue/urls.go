package delayqueue

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sluicehq/sluice/shared/fault"
)

// QueueURLs reads SLUICE_QUEUES: a JSON object of queue names and the URLs of their SQS queues.
func QueueURLs(text string) (map[string]string, error) {
	if text == "" {
		return nil, errors.New(`SLUICE_QUEUES is not set: give a JSON object such as {"orders": "https://sqs…/orders"}`)
	}
	var urls map[string]string
	if err := json.Unmarshal([]byte(text), &urls); err != nil {
		return nil, fmt.Errorf("SLUICE_QUEUES is not a JSON object of names and URLs: %w", err)
	}
	for name, url := range urls {
		if !fault.ValidName(name) || url == "" {
			return nil, fmt.Errorf("SLUICE_QUEUES has the entry %q: a name %s, and the URL must not be empty", name,
				fault.NameMessage)
		}
	}
	return urls, nil
}
