package elasticacheauth_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/internal/elasticacheauth"
	"github.com/sluicehq/sluice/shared/redisconn"
)

const arn = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:redis-AbCdEf"

// vault is a fake Secrets Manager that replies after a fixed time.
type vault struct {
	text  atomic.Value // a string (the secret) or a failure
	takes time.Duration
	calls atomic.Int32
}

func (v *vault) GetSecretValue(ctx context.Context, in *secretsmanager.GetSecretValueInput,
	_ ...func(*secretsmanager.Options)) (*secretsmanager.GetSecretValueOutput, error) {
	v.calls.Add(1)
	if v.takes > 0 {
		select {
		case <-time.After(v.takes):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	switch answer := v.text.Load().(type) {
	case failure:
		return nil, errors.New(string(answer))
	case string:
		if aws.ToString(in.SecretId) != arn {
			return nil, errors.New("unexpected secret")
		}
		return &secretsmanager.GetSecretValueOutput{SecretString: aws.String(answer)}, nil
	}
	return &secretsmanager.GetSecretValueOutput{SecretBinary: []byte{1}}, nil
}

// failure is the text of an error that vault returns.
type failure string

// holding returns a vault with this secret.
func holding(text string) *vault {
	v := &vault{}
	v.text.Store(text)
	return v
}

func TestSecret(t *testing.T) {
	t.Parallel()
	t.Run("accepts a password or an object with a password", func(t *testing.T) {
		t.Parallel()
		for name, c := range map[string]struct{ text, user, wantUser, wantPassword, wantErr string }{
			"a bare password":            {text: "p4ss word", wantPassword: "p4ss word"},
			"a bare password for a user": {text: "p4ss", user: "app", wantUser: "app", wantPassword: "p4ss"},
			"an object": {text: `{"username":"app","password":"p4ss","host":"h"}`, wantUser: "app",
				wantPassword: "p4ss"},
			"an object and another user": {text: `{"username":"app","password":"p4ss"}`, user: "other",
				wantUser: "other", wantPassword: "p4ss"},
			"an object without a password": {text: `{"auth":"hunter2"}`,
				wantErr: `the secret is a JSON object without a string "password"; add one`},
			"a truncated object": {text: `{"password":"hunter2"`,
				wantErr: `the secret is a JSON object without a string "password"; add one`},
			"an empty text": {text: "", wantErr: "the secret has no text; store the password as its text"},
			"an object with a password of another type": {text: `{"password":{"hunter2":1}}`,
				wantErr: `the secret is a JSON object without a string "password"; add one`},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				user, password, err := elasticacheauth.NewSecret(holding(c.text), arn, c.user).Provide(t.Context())
				if c.wantErr != "" {
					require.EqualError(t, err, c.wantErr)
					require.NotContains(t, err.Error(), "hunter2", "an error never contains the secret")
					return
				}
				require.NoError(t, err)
				require.Equal(t, c.wantUser, user)
				require.Equal(t, c.wantPassword, password)
			})
		}
	})

	t.Run("is read once per five minutes", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			v := holding("old")
			v.takes = 50 * time.Millisecond
			s := elasticacheauth.NewSecret(v, arn, "")
			for range 10 {
				go func() { _, _, _ = s.Provide(t.Context()) }()
			}
			synctest.Wait()
			_, password, err := s.Provide(t.Context())
			require.NoError(t, err)
			require.Equal(t, "old", password)
			<-time.After(5*time.Minute - time.Second)
			_, _, _ = s.Provide(t.Context())
			require.EqualValues(t, 1, v.calls.Load())
		})
	})

	t.Run("rotated password: is used after five minutes, and no call waits for it", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			v := holding("old")
			v.takes = 200 * time.Millisecond
			s := elasticacheauth.NewSecret(v, arn, "")
			_, _, err := s.Provide(t.Context())
			require.NoError(t, err)
			v.text.Store("new")
			<-time.After(5 * time.Minute)
			started := time.Now()
			_, password, err := s.Provide(t.Context())
			require.NoError(t, err)
			require.Equal(t, "old", password)
			require.Equal(t, started, time.Now(), "Provide does not wait while a password is cached")
			<-time.After(time.Second)
			_, password, err = s.Provide(t.Context())
			require.NoError(t, err)
			require.Equal(t, "new", password)
		})
	})

	t.Run("Secrets Manager unavailable: keeps the last password", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			v := holding("old")
			s := elasticacheauth.NewSecret(v, arn, "")
			_, _, err := s.Provide(t.Context())
			require.NoError(t, err)
			v.takes = time.Hour
			for range 3 {
				<-time.After(6 * time.Minute)
				_, password, err := s.Provide(t.Context())
				require.NoError(t, err)
				require.Equal(t, "old", password)
			}
			<-time.After(time.Minute) // the last read ends
		})
	})

	t.Run("failed read: is retried after one second", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			v := &vault{}
			v.text.Store(failure("AccessDenied"))
			s := elasticacheauth.NewSecret(v, arn, "")
			for range 20 {
				_, _, err := s.Provide(t.Context())
				require.ErrorContains(t, err, "AccessDenied")
				<-time.After(10 * time.Millisecond)
			}
			require.EqualValues(t, 1, v.calls.Load())
			<-time.After(time.Second)
			_, _, err := s.Provide(t.Context())
			require.Error(t, err)
			require.EqualValues(t, 2, v.calls.Load())
		})
	})

	t.Run("read that outlives its connection: serves the next connection", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			v := holding("p4ss")
			v.takes = 400 * time.Millisecond
			s := elasticacheauth.NewSecret(v, arn, "")
			hasty, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
			defer cancel()
			_, _, err := s.Provide(hasty)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			_, password, err := s.Provide(t.Context())
			require.NoError(t, err)
			require.Equal(t, "p4ss", password)
			require.EqualValues(t, 1, v.calls.Load())
		})
	})

	t.Run("authenticates an ACL user", func(t *testing.T) {
		t.Parallel()
		g := start(t, "127.0.0.1")
		require.NoError(t, g.setPassword(t.Context(), "app", "p4ss"))
		secret := elasticacheauth.NewSecret(holding(`{"username":"app","password":"p4ss"}`), arn, "")
		c := g.open(t, redisconn.Config{Credentials: secret.Provide})
		user, _, err := whoami(t.Context(), c)
		require.NoError(t, err)
		require.Equal(t, "app", user)

		require.NoError(t, g.admin.ConfigSet(t.Context(), "requirepass", "token").Err())
		c = g.open(t, redisconn.Config{Credentials: elasticacheauth.NewSecret(holding("token"), arn, "").Provide})
		user, _, err = whoami(t.Context(), c)
		require.NoError(t, err, "an AUTH token is the password of the default user")
		require.Equal(t, "default", user)
	})
}
