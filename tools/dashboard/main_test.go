package main

import (
	"bytes"
	"encoding/xml"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const template = "../../terraform/module/dashboard.json.tftpl"

func TestRun(t *testing.T) {
	t.Parallel()
	t.Run("draws the picture that the documentation shows", func(t *testing.T) {
		t.Parallel()
		var now bytes.Buffer
		require.NoError(t, run(template, &now))
		kept, err := os.ReadFile("../../docs/img/dashboard.svg")
		require.NoError(t, err)
		require.True(t, bytes.Equal(kept, now.Bytes()),
			"the dashboard has changed: go run ./tools/dashboard >docs/img/dashboard.svg")
	})
}

func TestDraw(t *testing.T) {
	t.Parallel()
	t.Run("writes well-formed XML with every graph and line", func(t *testing.T) {
		t.Parallel()
		text, err := os.ReadFile(template)
		require.NoError(t, err)
		widgets, err := parse(string(text))
		require.NoError(t, err)
		picture := draw(widgets)
		decoder := xml.NewDecoder(strings.NewReader(picture))
		for err == nil {
			_, err = decoder.Token()
		}
		require.ErrorIs(t, err, io.EOF)
		for _, w := range widgets {
			require.Contains(t, picture, w.title+w.heading)
			for _, s := range w.series {
				_, ok := levelOf(s)
				require.True(t, ok, "%s has no example; add it to levels", s.metric)
			}
		}
	})
}
