package publicline

import (
	"bytes"
	"encoding/json"
	"go/constant"
	"go/types"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/client"
	"github.com/sluicehq/sluice/shared/fault"
	"github.com/sluicehq/sluice/shared/policy"
)

// constants maps the name of each exported string constant of a type, without the prefix, to the
// constant's value.
func constants(p *types.Package, typeName, prefix string) map[string]string {
	out := make(map[string]string)
	for _, name := range p.Scope().Names() {
		c, ok := p.Scope().Lookup(name).(*types.Const)
		if !ok || !c.Exported() {
			continue
		}
		if named, ok := c.Type().(*types.Named); ok && named.Obj().Name() == typeName {
			out[strings.TrimPrefix(name, prefix)] = constant.StringVal(c.Val())
		}
	}
	return out
}

func TestConstants(t *testing.T) {
	t.Parallel()
	const shared = "github.com/sluicehq/sluice/shared/"
	ours := load(t, "../../client", clientModule)[0]
	servers := load(t, "../..", shared+"fault", shared+"policy", shared+"delayqueue", shared+"lock")
	faults, policies, queues, locks := servers[0], servers[1], servers[2], servers[3]

	codes := constants(ours, "Code", "Code")
	for _, added := range []string{"Forbidden", "Throttled", "Unavailable", "Unreachable", "Unexpected"} {
		require.Contains(t, codes, added)
		delete(codes, added) // codes of failures without a response from the API
	}
	require.Equal(t, constants(faults, "Code", ""), codes)

	for _, pair := range []struct{ server, client map[string]string }{
		{constants(policies, "Algorithm", ""), constants(ours, "Algorithm", "Algorithm")},
		{constants(policies, "Mode", ""), constants(ours, "PolicyMode", "Policy")},
		{constants(policies, "OnUnavailable", "Unavailable"), constants(ours, "OnUnavailable", "OnUnavailable")},
		{constants(queues, "State", ""), constants(ours, "JobState", "Job")},
		{constants(locks, "Mode", ""), constants(ours, "LockMode", "Lock")},
	} {
		require.NotEmpty(t, pair.client)
		require.Equal(t, pair.server, pair.client)
	}
}

// filled returns a T whose exported fields all have non-zero values. No two strings and no two
// integers are equal.
func filled[T any]() T {
	var out T
	n := 0
	fill(reflect.ValueOf(&out).Elem(), &n)
	return out
}

func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Struct:
		for field := range v.Type().Fields() {
			if field.IsExported() {
				fill(v.FieldByIndex(field.Index), n)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n)
	case reflect.String:
		v.SetString(strings.Repeat("x", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(float64(*n) / 8)
	case reflect.Int64:
		if v.Type() == reflect.TypeFor[time.Duration]() {
			v.SetInt(int64(*n) * int64(time.Millisecond))
			return
		}
		v.SetInt(int64(*n))
	default:
		panic("fill has no value for a " + v.Kind().String())
	}
}

// through converts a value to a T by means of JSON: it encodes the value, decodes the JSON into a
// T, and encodes the T. It returns the JSON of the value and the JSON of the T. It fails the test
// if T lacks a field of the JSON.
func through[T any](t *testing.T, from any) (before, after string) {
	t.Helper()
	text, err := json.Marshal(from)
	require.NoError(t, err)
	var value T
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&value))
	again, err := json.Marshal(value)
	require.NoError(t, err)
	return string(text), string(again)
}

func TestPolicyJSON(t *testing.T) {
	t.Parallel()
	t.Run("keeps the server's fields in the client's type", func(t *testing.T) {
		t.Parallel()
		before, after := through[client.Policy](t, filled[policy.Document]())
		require.JSONEq(t, before, after)
	})
	t.Run("keeps the client's fields in the server's type", func(t *testing.T) {
		t.Parallel()
		before, after := through[policy.Document](t, filled[client.Policy]())
		require.JSONEq(t, before, after)
	})
	t.Run("distinguishes an override without rules from an override with an empty list", func(t *testing.T) {
		t.Parallel()
		for _, rules := range [][]client.Rule{nil, {}} {
			p := client.Policy{Name: "p", Overrides: []client.Override{{Key: "k", Rules: rules}}}
			before, after := through[policy.Document](t, p)
			require.JSONEq(t, before, after)
			require.Equal(t, rules != nil, strings.Contains(after, `"key":"k","rules":[]`), after)
		}
	})
	t.Run("omits fields that have a default", func(t *testing.T) {
		t.Parallel()
		text, err := json.Marshal(client.Policy{Name: "p", Rules: []client.Rule{{
			Name: "r", Algorithm: client.AlgorithmGCRA, Limit: 5, Window: time.Minute,
		}}})
		require.NoError(t, err)
		var d policy.Document
		require.NoError(t, json.Unmarshal(text, &d))
		_, err = d.Normalize()
		require.NoError(t, err)
	})
}

func TestBounds(t *testing.T) {
	t.Parallel()
	var charged []string // keys
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Key string }
		_ = json.NewDecoder(r.Body).Decode(&body)
		charged = append(charged, body.Key)
		_, _ = w.Write([]byte(`{"allowed":true}`))
	}))
	defer api.Close()
	c, err := client.New(client.Config{Endpoint: api.URL})
	require.NoError(t, err)

	t.Run("of names", func(t *testing.T) {
		for _, name := range []string{
			"a", "order:42", "A.b_c:d-e", "0", strings.Repeat("x", 128),
			"", "-a", ".a", "_a", ":a", "a b", "a/b", "ä", "a{b}", strings.Repeat("x", 129), "a\n", "..",
		} {
			err := c.Reset(t.Context(), name, "key")
			require.Equal(t, fault.ValidName(name), err == nil, "%q: %v", name, err)
			if err != nil {
				require.ErrorContains(t, err, fault.NameMessage)
			}
		}
	})

	t.Run("of limiter keys", func(t *testing.T) {
		limit, err := c.Middleware(client.LimitConfig{
			Policy: "p", Key: func(r *http.Request) string { return r.Header.Get("Key") },
		})
		require.NoError(t, err)
		for _, length := range []int{policy.MaxKey, policy.MaxKey + 1} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
			r.Header.Set("Key", strings.Repeat("k", length))
			limit(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), r)
		}
		require.Len(t, charged[len(charged)-2], policy.MaxKey)
		require.Contains(t, charged[len(charged)-1], "sha256:")
	})
}
