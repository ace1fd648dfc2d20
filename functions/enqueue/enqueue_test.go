package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicehq/sluice/shared/delayqueue"
	"github.com/sluicehq/sluice/shared/httpapi/apitest"
	"github.com/sluicehq/sluice/shared/instant"
)

func TestInvalidJob(t *testing.T) {
	f := start(t)
	long := strings.Repeat("x", 129)
	for name, c := range map[string]struct {
		body   any
		fields []string
	}{
		"no payload":                 {object{}, []string{"payload"}},
		"no body":                    {nil, []string{"payload"}},
		"a misspelt field":           {`{"payload":1,"delay":5}`, []string{"delay"}},
		"a field in another case":    {`{"Payload":1}`, []string{"Payload"}},
		"a field twice":              {`{"payload":1,"payload":2}`, []string{"payload"}},
		"an array":                   {`[]`, []string{"body"}},
		"broken JSON":                {`{"payload":`, []string{"payload"}},
		"two objects":                {`{"payload":1}{}`, []string{"body"}},
		"a payload that SQS refuses": {"{\"payload\":\"\uFFFF\"}", []string{"payload"}},
		"a negative delay":           {object{"payload": 1, "delay_ms": -1}, []string{"delay_ms"}},
		"a delay of more than ten years": {object{"payload": 1, "delay_ms": int64(3654) * 86_400_000},
			[]string{"delay_ms"}},
		"the largest delay in 64 bits": {`{"payload":1,"delay_ms":9223372036854775807}`, []string{"delay_ms"}},
		"a delay that exceeds 64 bits": {`{"payload":1,"delay_ms":1e30}`, []string{"delay_ms"}},
		"a delay with a fraction":      {`{"payload":1,"delay_ms":1.5}`, []string{"delay_ms"}},
		"a delay as text":              {`{"payload":1,"delay_ms":"5"}`, []string{"delay_ms"}},
		"a delay and a time": {object{"payload": 1, "delay_ms": 5, "run_at": in(time.Hour)},
			[]string{"run_at"}},
		"a text that is not a time":   {object{"payload": 1, "run_at": "tomorrow"}, []string{"run_at"}},
		"a time without a zone":       {object{"payload": 1, "run_at": "2030-01-01T00:00:00"}, []string{"run_at"}},
		"a time that is empty":        {object{"payload": 1, "run_at": ""}, []string{"run_at"}},
		"a time over ten years ahead": {object{"payload": 1, "run_at": "2999-01-01T00:00:00Z"}, []string{"run_at"}},
		"an id with a space":          {object{"payload": 1, "id": "a b"}, []string{"id"}},
		"an id with a slash":          {object{"payload": 1, "id": "a/b"}, []string{"id"}},
		"an empty id":                 {object{"payload": 1, "id": ""}, []string{"id"}},
		"an id of 129 characters":     {object{"payload": 1, "id": long}, []string{"id"}},
		"a max_attempts of 0":         {object{"payload": 1, "max_attempts": 0}, []string{"max_attempts"}},
		"a max_attempts of 101":       {object{"payload": 1, "max_attempts": 101}, []string{"max_attempts"}},
		"an ack timeout too short": {object{"payload": 1, "max_attempts": 2, "ack_timeout_ms": 999},
			[]string{"ack_timeout_ms"}},
		"an ack timeout too long": {object{"payload": 1, "max_attempts": 2, "ack_timeout_ms": 43_200_001},
			[]string{"ack_timeout_ms"}},
		"a backoff outside of its ranges": {object{"payload": 1,
			"backoff": object{"initial_ms": 0, "max_ms": -1, "multiplier": 0.5}},
			[]string{"backoff.initial_ms", "backoff.max_ms", "backoff.multiplier"}},
		"a max_ms below initial_ms": {object{"payload": 1, "backoff": object{"initial_ms": 10, "max_ms": 9}},
			[]string{"backoff.max_ms"}},
		"an unknown field of a backoff": {object{"payload": 1, "backoff": object{"factor": 2}},
			[]string{"backoff.factor"}},
		"an expiry that is not a time": {object{"payload": 1, "expires_at": "never"}, []string{"expires_at"}},
		"an expiry before the due time": {object{"payload": 1, "run_at": "2027-01-02T00:00:00Z",
			"expires_at": "2027-01-01T00:00:00Z"}, []string{"expires_at"}},
		"a line break in a header": {object{"payload": 1, "headers": object{"a": "b\r\nc: d"}}, []string{"headers.a"}},
		"a payload nested too deep": {`{"payload":` + strings.Repeat("[", 257) + strings.Repeat("]", 257) + `}`,
			[]string{"payload"}},
		"every field empty or zero": {
			object{"payload": 1, "id": "", "max_attempts": 0, "ack_timeout_ms": 0,
				"backoff": object{"initial_ms": 0, "max_ms": 0, "multiplier": 0}},
			[]string{"id", "max_attempts", "ack_timeout_ms", "backoff.initial_ms", "backoff.max_ms",
				"backoff.multiplier"},
		},
		"a group on a standard queue": {object{"payload": 1, "group": "g"}, []string{"group"}},
		"a reserved header": {object{"payload": 1, "headers": object{"sluice-job-id": "x"}},
			[]string{"headers.sluice-job-id"}},
		"a header with a space":      {object{"payload": 1, "headers": object{"a b": "x"}}, []string{"headers.a b"}},
		"an empty header":            {object{"payload": 1, "headers": object{"a": ""}}, []string{"headers.a"}},
		"a control code in a header": {object{"payload": 1, "headers": object{"a": "\x01"}}, []string{"headers.a"}},
		"a number in a header":       {`{"payload":1,"headers":{"a":1}}`, []string{"headers.a"}},
		"nine headers":               {object{"payload": 1, "headers": manyHeaders(9, "v")}, []string{"headers"}},
		"headers that are too large": {object{"payload": 1, "headers": manyHeaders(8, strings.Repeat("v", 512))},
			[]string{"headers"}},
		"an unknown durability": {object{"payload": 1, "durability": "s3"}, []string{"durability"}},
		"several invalid fields": {object{"delay_ms": -1, "max_attempts": 0, "durability": "x"},
			[]string{"payload", "delay_ms", "max_attempts", "durability"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := f.Want(t, http.StatusBadRequest, http.MethodPost, jobsPath, c.body)
			require.Equal(t, "invalid_request", a.Body["code"])
			require.ElementsMatch(t, c.fields, apitest.InvalidFields(t, a.Body), a.Text)
		})
	}
	require.Empty(t, f.Want(t, http.StatusOK, http.MethodGet, jobsPath, nil).Body["jobs"], "nothing was enqueued")
}

func manyHeaders(n int, value string) object {
	out := object{}
	for i := range n {
		out["h"+string(rune('0'+i))] = value
	}
	return out
}

func TestInvalidRequest(t *testing.T) {
	f := start(t)
	f.post(t, jobsPath, object{"payload": 1, "id": "a"})
	for name, c := range map[string]struct {
		method, target string
		body           any
		status         int
		code           string
	}{
		"an unknown queue": {http.MethodPost, "/v1/queues/nobodys/jobs", object{"payload": 1}, 404,
			"queue_not_found"},
		"an unknown queue's batch": {http.MethodPost, "/v1/queues/nobodys/jobs/batch",
			object{"jobs": []object{{"payload": 1}}}, 404, "queue_not_found"},
		"an unknown queue's list":   {http.MethodGet, "/v1/queues/nobodys/jobs", nil, 404, "queue_not_found"},
		"an unknown queue's counts": {http.MethodGet, "/v1/queues/nobodys", nil, 404, "queue_not_found"},
		"an unknown queue's pause":  {http.MethodPost, "/v1/queues/nobodys/pause", nil, 404, "queue_not_found"},
		"an unknown queue's job":    {http.MethodDelete, "/v1/queues/nobodys/jobs/a", nil, 404, "queue_not_found"},
		"a bad queue name": {http.MethodPost, "/v1/queues/a%20b/jobs", object{"payload": 1}, 400,
			"invalid_request"},
		"a job of another queue":  {http.MethodGet, fifoJobsPath + "/a", nil, 404, "job_not_found"},
		"an unknown job":          {http.MethodGet, jobsPath + "/b", nil, 404, "job_not_found"},
		"an unknown job's cancel": {http.MethodDelete, jobsPath + "/b", nil, 404, "job_not_found"},
		"an unknown job's change": {http.MethodPatch, jobsPath + "/b", object{"delay_ms": 1}, 404, "job_not_found"},
		"an unknown job's ack":    {http.MethodPost, jobsPath + "/b/ack", object{"attempt": 1}, 404, "job_not_found"},
		"a bad job id":            {http.MethodGet, jobsPath + "/a%2Fb", nil, 400, "invalid_request"},
		"an empty change":         {http.MethodPatch, jobsPath + "/a", object{}, 400, "invalid_request"},
		"a change with a delay and a time": {http.MethodPatch, jobsPath + "/a", object{"delay_ms": 1, "run_at": in(0)},
			400, "invalid_request"},
		"a change of the id":        {http.MethodPatch, jobsPath + "/a", object{"id": "b"}, 400, "invalid_request"},
		"an ack without an attempt": {http.MethodPost, jobsPath + "/a/ack", object{}, 400, "invalid_request"},
		"an ack of attempt 0": {http.MethodPost, jobsPath + "/a/ack", object{"attempt": 0}, 400,
			"invalid_request"},
		"a nack's negative delay": {http.MethodPost, jobsPath + "/a/nack", object{"attempt": 1, "delay_ms": -1}, 400,
			"invalid_request"},
		"a limit of 201":               {http.MethodGet, jobsPath + "?limit=201", nil, 400, "invalid_request"},
		"a limit of 0":                 {http.MethodGet, jobsPath + "?limit=0", nil, 400, "invalid_request"},
		"a limit that is not a number": {http.MethodGet, jobsPath + "?limit=x", nil, 400, "invalid_request"},
		"an unknown state":             {http.MethodGet, jobsPath + "?state=lost", nil, 400, "invalid_request"},
		"an unknown parameter":         {http.MethodGet, jobsPath + "?page=2", nil, 400, "invalid_request"},
		"an invalid cursor":            {http.MethodGet, jobsPath + "?cursor=AAAA", nil, 400, "invalid_request"},
		"an unsupported method":        {http.MethodPut, jobsPath, object{"payload": 1}, 405, "method_not_allowed"},
		"an unknown path":              {http.MethodGet, "/v1/queue", nil, 404, "not_found"},
		"a redrive with ids and a limit": {http.MethodPost, "/v1/queues/orders/redrive",
			object{"limit": 1, "ids": []string{"a"}}, 400, "invalid_request"},
		"a redrive with an empty list": {http.MethodPost, "/v1/queues/orders/redrive", object{"ids": []string{}}, 400,
			"invalid_request"},
		"a pause with an invalid time": {http.MethodPost, "/v1/queues/orders/pause", object{"until": "never"}, 400,
			"invalid_request"},
	} {
		t.Run(name, func(t *testing.T) {
			a := f.Want(t, c.status, c.method, c.target, c.body)
			require.Equal(t, c.code, a.Body["code"], a.Text)
		})
	}
	a := f.Want(t, http.StatusUnsupportedMediaType, http.MethodPost, jobsPath, `{"payload":1}`, "Content-Type",
		"text/plain")
	require.Equal(t, "unsupported_media_type", a.Body["code"])
	require.Contains(t, f.Want(t, http.StatusMethodNotAllowed, http.MethodPut, jobsPath, nil).Header.Get("Allow"),
		http.MethodPost)
}

func TestEnqueue(t *testing.T) {
	t.Run("payloads are stored byte for byte up to the size limit", func(t *testing.T) {
		f := start(t)
		for name, payload := range map[string]string{
			"null": `null`, "number": `-1.50e+3`, "object": `{ "b" : 1, "a" : [ "<é🙂>" ] }`,
			"escaped": `"\u0000\ufffe"`,
			"largest": `"` + strings.Repeat("x", delayqueue.MaxPayload-2) + `"`,
		} {
			f.Want(t, http.StatusAccepted, http.MethodPost, jobsPath, `{"id":"`+name+`","payload":`+payload+`}`)
			got, err := f.queues.Get(t.Context(), "orders", name)
			require.NoError(t, err)
			require.Equal(t, payload, string(got.Payload))
		}
		over := `"` + strings.Repeat("x", delayqueue.MaxPayload-1) + `"`
		for name, a := range map[string]apitest.Reply{
			"a job":    f.Send(t, http.MethodPost, jobsPath, `{"payload":`+over+`}`),
			"a change": f.Send(t, http.MethodPatch, jobsPath+"/null", `{"payload":`+over+`}`),
			"a body": f.Send(t, http.MethodPost, jobsPath,
				`{"payload":1,"headers":{"a":"`+strings.Repeat("x", 1<<20)+`"}}`),
		} {
			require.Equal(t, http.StatusRequestEntityTooLarge, a.Status, name)
			require.Equal(t, "payload_too_large", a.Body["code"], name)
		}
	})

	t.Run("the due time follows delay_ms or run_at", func(t *testing.T) {
		f := start(t)
		target := time.Now().Add(48 * time.Hour).Truncate(time.Millisecond)
		for name, c := range map[string]struct {
			body object
			want time.Time
		}{
			"a job without a time is due now": {object{}, time.Now()},
			"a job with a delay":              {object{"delay_ms": 60_000}, time.Now().Add(time.Minute)},
			"a delay of ten years": {object{"delay_ms": int64(3650) * 86_400_000},
				time.Now().Add(3650 * 24 * time.Hour)},
			"a time": {object{"run_at": instant.Format(target)}, target},
			"a time with a zone": {object{"run_at": target.In(time.FixedZone("", 7200)).Format(time.RFC3339Nano)},
				target},
			"a time in the past is due now":   {object{"run_at": "2001-01-01T00:00:00.000Z"}, time.Now()},
			"a time before 1970 is due now":   {object{"run_at": "1969-07-20T20:17:40Z"}, time.Now()},
			"a time in the year 1 is due now": {object{"run_at": "0001-01-01T00:00:00Z"}, time.Now()},
			"a delay of zero is due now":      {object{"delay_ms": 0}, time.Now()},
		} {
			t.Run(name, func(t *testing.T) {
				c.body["payload"] = 1
				a := f.post(t, jobsPath, c.body)
				require.Equal(t, "scheduled", a.Body["state"])
				require.Equal(t, "orders", a.Body["queue"])
				require.EqualValues(t, 0, a.Body["attempt"])
				require.NotEmpty(t, a.Body["id"])
				text, _ := a.Body["run_at"].(string)
				at, err := time.Parse("2006-01-02T15:04:05.000Z", text)
				require.NoError(t, err)
				require.WithinDuration(t, c.want, at, 10*time.Second)
				if c.want.Equal(target) {
					require.True(t, at.Equal(target), "an absolute time is exact: %s", text)
				}
			})
		}
	})

	t.Run("an existing ID is a duplicate, and a different payload is reported", func(t *testing.T) {
		f := start(t)
		first := f.post(t, jobsPath, object{"payload": object{"n": 1}, "id": "a", "delay_ms": 60_000})
		again := f.Want(t, http.StatusOK, http.MethodPost, jobsPath,
			object{"payload": object{"n": 1}, "id": "a", "delay_ms": 90_000})
		require.Equal(t, true, again.Body["duplicate"])
		require.Nil(t, again.Body["payload_differs"])
		require.Equal(t, first.Body["run_at"], again.Body["run_at"], "the existing job is unchanged")
		other := f.Want(t, http.StatusOK, http.MethodPost, jobsPath, object{"payload": object{"n": 2}, "id": "a"})
		require.Equal(t, true, other.Body["duplicate"])
		require.Equal(t, true, other.Body["payload_differs"])
		require.JSONEq(t, `{"n":1}`, string(f.payload(t, "a")))
	})

	t.Run("uses the header Idempotency-Key as the ID", func(t *testing.T) {
		f := start(t)
		a := f.Want(t, http.StatusAccepted, http.MethodPost, jobsPath, object{"payload": 1}, "Idempotency-Key", "key-1")
		require.Equal(t, "key-1", a.Body["id"])
		f.Want(t, http.StatusOK, http.MethodPost, jobsPath, object{"payload": 1}, "Idempotency-Key", "key-1")
		f.Want(t, http.StatusOK, http.MethodPost, jobsPath, object{"payload": 1, "id": "key-1"}, "Idempotency-Key",
			"key-1")
		differ := f.Want(t, http.StatusBadRequest, http.MethodPost, jobsPath, object{"payload": 1, "id": "key-1"},
			"Idempotency-Key", "key-2")
		require.Equal(t, []string{"Idempotency-Key"}, apitest.InvalidFields(t, differ.Body))
		bad := f.Want(t, http.StatusBadRequest, http.MethodPost, jobsPath, object{"payload": 1}, "Idempotency-Key",
			"a b")
		require.Equal(t, []string{"id"}, apitest.InvalidFields(t, bad.Body))
	})
}
