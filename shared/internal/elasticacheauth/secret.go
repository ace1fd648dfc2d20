package elasticacheauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
)

const (
	// secretLife is the time that a password is cached. After this time, the next connection causes
	// a read of the secret.
	secretLife = 5 * time.Minute
	// secretRetry is the time that a failure is cached, so that a broken secret does not cause one
	// call per connection.
	secretRetry = time.Second
	// secretTimeout bounds one read. If the connection that started the read times out, the read
	// continues, and the next connection uses the result.
	secretTimeout = 5 * time.Second
)

// Secrets is the part of the Secrets Manager client that [Secret] uses.
type Secrets interface {
	GetSecretValue(ctx context.Context, in *secretsmanager.GetSecretValueInput,
		options ...func(*secretsmanager.Options)) (*secretsmanager.GetSecretValueOutput, error)
}

// Secret is a password in Secrets Manager. The text of the secret is either the password, or a JSON
// object with the field "password" and the optional field "username". It is safe for concurrent
// use.
type Secret struct {
	api  Secrets
	arn  string
	user string
	now  func() time.Time

	mu       sync.Mutex
	cached   *login
	nextRead time.Time
	err      error         // error of the last read
	reading  chan struct{} // non-nil during a read; closed when it ends
}

type login struct{ user, password string }

// NewSecret returns the Secret with this ARN. user is the Redis user. If user is "", Provide
// returns the "username" in the secret, or "" (Redis's default user) if the secret has no
// "username".
func NewSecret(api Secrets, arn, user string) *Secret {
	return &Secret{api: api, arn: arn, user: user, now: time.Now}
}

// Provide returns the user and the password, for redisconn.Config.Credentials. If the cached
// password is older than secretLife, Provide returns it and starts a read in the background. So a
// rotation must keep the old password valid for at least secretLife.
func (s *Secret) Provide(ctx context.Context) (user, password string, err error) {
	s.mu.Lock()
	if s.reading == nil && !s.now().Before(s.nextRead) {
		s.reading = make(chan struct{})
		go s.refresh(s.reading) //nolint:gosec,contextcheck // the read outlives the connection that starts it
	}
	cached, reading, failure := s.cached, s.reading, s.err
	s.mu.Unlock()

	switch {
	case cached != nil:
		return cached.user, cached.password, nil
	case reading == nil:
		return "", "", failure
	}

	select {
	case <-reading:
	case <-ctx.Done():
		return "", "", fmt.Errorf("error waiting for a password: %w", ctx.Err())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cached == nil {
		return "", "", s.err
	}
	return s.cached.user, s.cached.password, nil
}

// refresh reads the secret and caches the result.
func (s *Secret) refresh(done chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), secretTimeout)
	defer cancel()
	found, err := s.read(ctx)

	s.mu.Lock()
	defer s.mu.Unlock()
	s.reading, s.err, s.nextRead = nil, err, s.now().Add(secretRetry)
	if err == nil {
		s.cached, s.nextRead = &found, s.now().Add(secretLife)
	}
	close(done)
}

func (s *Secret) read(ctx context.Context) (login, error) {
	out, err := s.api.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: aws.String(s.arn)})
	if err != nil {
		return login{}, fmt.Errorf("error reading the secret %s: %w", s.arn, err)
	}
	return parseSecret(aws.ToString(out.SecretString), s.user)
}

// parseSecret parses the text of a secret. Its errors never contain any part of the text.
func parseSecret(text, user string) (login, error) {
	if !strings.HasPrefix(strings.TrimSpace(text), "{") {
		if text == "" {
			return login{}, errors.New("the secret has no text; store the password as its text")
		}
		return login{user: user, password: text}, nil
	}
	var fields struct {
		Username string `json:"username"`
		Password string `json:"password"`
	}
	if json.Unmarshal([]byte(text), &fields) != nil || fields.Password == "" {
		return login{}, errors.New(`the secret is a JSON object without a string "password"; add one`)
	}
	if user == "" {
		user = fields.Username
	}
	return login{user: user, password: fields.Password}, nil
}
