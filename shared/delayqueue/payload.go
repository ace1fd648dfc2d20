package delayqueue

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/klauspost/compress/zstd"

	"github.com/sluicehq/sluice/shared/fault"
)

const (
	// zstdMark is the first byte of a compressed payload. No JSON starts with it.
	zstdMark = 0x01
	// compressOver is the size in bytes above which a payload is compressed, if compression makes
	// it smaller.
	compressOver = 1024
)

// codec converts jobs to records and back. It is safe for concurrent use.
type codec struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

func newCodec() (*codec, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, fmt.Errorf("error creating the compressor: %w", err)
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(2*MaxPayload))
	if err != nil {
		return nil, fmt.Errorf("error creating the decompressor: %w", err)
	}
	return &codec{encoder: encoder, decoder: decoder}, nil
}

// pack returns a payload as it is stored in a record.
func (c *codec) pack(payload []byte) string { return string(c.appendPacked(nil, payload)) }

func (c *codec) appendPacked(b, payload []byte) []byte {
	if len(payload) > compressOver {
		if packed := c.encoder.EncodeAll(payload, []byte{zstdMark}); len(packed) < len(payload) {
			return append(b, packed...)
		}
	}
	return append(b, payload...)
}

func (c *codec) unpack(stored string) (json.RawMessage, error) {
	if stored == "" || stored[0] != zstdMark {
		return json.RawMessage(stored), nil
	}
	payload, err := c.decoder.DecodeAll([]byte(stored[1:]), nil)
	if err != nil {
		return nil, fmt.Errorf("error decompressing a payload: %w", err)
	}
	return payload, nil
}

// checkPayloadSize returns [ErrPayloadTooLarge] if payload is larger than MaxPayload.
func checkPayloadSize(payload json.RawMessage) error {
	if len(payload) > MaxPayload {
		return fault.New(fault.PayloadTooLarge,
			"the payload is over %d bytes of JSON: store large data elsewhere and send a reference to it", MaxPayload)
	}
	return nil
}

// checkPayload rejects a payload that is not valid JSON, is nested too deeply, or contains
// characters that SQS does not accept.
func checkPayload(f *fault.Fields, payload json.RawMessage) {
	switch {
	case len(payload) == 0:
		f.Add("payload", "is required; null is a valid payload")
	case deeperThan(payload, MaxPayloadDepth):
		f.Add("payload", "must be nested at most %d deep", MaxPayloadDepth)
	case !jsontext.Value(payload).IsValid(jsontext.AllowDuplicateNames(true)):
		f.Add("payload", "must be valid JSON in UTF-8")
	case bytes.ContainsRune(payload, '\uFFFE') || bytes.ContainsRune(payload, '\uFFFF'):
		f.Add("payload", `has a character that SQS does not accept, U+FFFE or U+FFFF: write it as \ufffe or \uffff`)
	}
}

// deeperThan reports whether arrays and objects of a JSON text are nested more than limit levels
// deep.
func deeperThan(text []byte, limit int) bool {
	if bytes.Count(text, []byte{'['})+bytes.Count(text, []byte{'{'}) <= limit {
		return false
	}
	depth, inString := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++ // the escaped character does not end the string
		case c == '"':
			inString = !inString
		case inString:
		case c == '[', c == '{':
			if depth++; depth > limit {
				return true
			}
		case c == ']', c == '}':
			depth--
		}
	}
	return false
}
