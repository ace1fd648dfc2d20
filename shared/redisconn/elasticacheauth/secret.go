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
	// secretLife is how long a password is used before Secrets Manager is asked again: a rotated
	// one is in use after that.
	secretLife = 5 * time.Minute
	// secretRetry is how long a failure is remembered, so that a broken secret does not mean a call
	// for each connection.
	secretRetry = time.Second
	// secretTimeout bounds one call. It goes on when the connection that wanted the password has
	// given up: the next one finds it.
	secretTimeout = 5 * time.Second
)

// Secrets is the part of Secrets Manager's client that is used.
type Secrets interface {
	GetSecretValue(ctx context.Context, in *secretsmanager.GetSecretValueInput,
		options ...func(*secretsmanager.Options)) (*secretsmanager.GetSecretValueOutput, error)
}

// Secret is a password in Secrets Manager: either the secret's whole text, or its field "password"
// (beside "username", which is optional) when the text is a JSON object. It is safe for concurrent
// use.
type Secret struct {
	api  Secrets
	arn  string
	user string
	now  func() time.Time

	mu       sync.Mutex
	known    *login
	next     time.Time     // when to ask again
	err      error         // of the last call
	underway chan struct{} // non-nil during a call; closed when it ends
}

type login struct{ user, password string }

// NewSecret makes a Secret. user is whom the password is for; "" means the secret's own "username",
// else Redis' default user.
func NewSecret(api Secrets, arn, user string) *Secret {
	return &Secret{api: api, arn: arn, user: user, now: time.Now}
}

// Provide returns the user and the password. It is a redisconn.Config's Credentials. A password
// that is due to be asked for again is used until the answer is there: whoever rotates it keeps the
// old one valid for longer than that.
func (s *Secret) Provide(ctx context.Context) (user, password string, err error) {
	s.mu.Lock()
	if s.underway == nil && !s.now().Before(s.next) {
		s.underway = make(chan struct{})
		go s.ask(s.underway) //nolint:gosec,contextcheck // the call outlives the connection that starts it
	}
	known, underway, failure := s.known, s.underway, s.err
	s.mu.Unlock()
	switch {
	case known != nil:
		return known.user, known.password, nil
	case underway == nil:
		return "", "", failure
	}
	select {
	case <-underway:
	case <-ctx.Done():
		return "", "", fmt.Errorf("error waiting for a password: %w", ctx.Err())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		return "", "", s.err
	}
	return s.known.user, s.known.password, nil
}

func (s *Secret) ask(done chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), secretTimeout)
	defer cancel()
	found, err := s.fetch(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.underway, s.err, s.next = nil, err, s.now().Add(secretRetry)
	if err == nil {
		s.known, s.next = &found, s.now().Add(secretLife)
	}
	close(done)
}

func (s *Secret) fetch(ctx context.Context) (login, error) {
	out, err := s.api.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: aws.String(s.arn)})
	if err != nil {
		return login{}, fmt.Errorf("error reading the secret %s: %w", s.arn, err)
	}
	return read(aws.ToString(out.SecretString), s.user)
}

// read takes a secret's text apart. No error repeats any of it.
func read(text, user string) (login, error) {
	if !strings.HasPrefix(strings.TrimSpace(text), "{") {
		if text == "" {
			return login{}, errors.New("the secret has no text")
		}
		return login{user: user, password: text}, nil
	}
	var fields struct {
		Username string `json:"username"`
		Password string `json:"password"`
	}
	if json.Unmarshal([]byte(text), &fields) != nil || fields.Password == "" {
		return login{}, errors.New(`the secret is an object without a text "password"`)
	}
	if user == "" {
		user = fields.Username
	}
	return login{user: user, password: fields.Password}, nil
}
