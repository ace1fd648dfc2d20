package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// widget is a heading, or a graph with its lines. Its position and size are in units of the grid.
type widget struct {
	x, y, width, height int
	heading, title      string
	unit                string
	series              []series
}

// series is a line of a graph.
type series struct{ metric, label, stat string }

// document is the part of the dashboard's JSON that the picture shows.
type document struct {
	Widgets []struct {
		Type                string
		X, Y, Width, Height int
		Properties          struct {
			Markdown, Title, Stat string
			Metrics               [][]any
			YAxis                 struct{ Left struct{ Label string } }
		}
	}
}

// parse returns the widgets of the template. It replaces the template's variables with the values
// of a deployment named sluice that has a queue named orders.
func parse(template string) ([]widget, error) {
	text := strings.NewReplacer("${region}", "eu-central-1", "${name}", "sluice", "${namespace}", "Sluice/sluice",
		"${api_id}", "abc123",
		"$${PROP('Dim.queue')}", "orders", "$${PROP('Dim.function')} $${PROP('Dim.outcome')}", "limit ok", "$${",
		"${").Replace(template)
	var doc document
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		return nil, fmt.Errorf("error reading the dashboard as JSON: %w", err)
	}
	out := make([]widget, len(doc.Widgets))
	for i, w := range doc.Widgets {
		p := w.Properties
		out[i] = widget{x: w.X, y: w.Y, width: w.Width, height: w.Height,
			heading: strings.TrimPrefix(p.Markdown, "## "), title: p.Title, unit: p.YAxis.Left.Label}
		for _, m := range p.Metrics {
			s, err := seriesOf(m, p.Stat)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", p.Title, err)
			}
			out[i].series = append(out[i].series, s)
		}
	}
	return out, nil
}

var search = regexp.MustCompile(`MetricName="(\w+)"', '(\w+)'`)

// seriesOf returns the line for an entry of a widget's metrics. stat is the widget's default
// statistic.
func seriesOf(m []any, stat string) (series, error) {
	options, ok := m[len(m)-1].(map[string]any)
	if !ok {
		return series{}, fmt.Errorf("%v has no label", m)
	}
	s := series{label: fmt.Sprint(options["label"]), stat: stat}
	if own, ok := options["stat"].(string); ok {
		s.stat = own
	}
	if expression, ok := options["expression"].(string); ok {
		found := search.FindStringSubmatch(expression)
		if found == nil {
			return series{}, fmt.Errorf("%q is not a search for a metric", expression)
		}
		s.metric, s.stat = found[1], found[2]
		return s, nil
	}
	s.metric = fmt.Sprint(m[1])
	return s, nil
}
