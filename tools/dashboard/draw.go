package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

const (
	column, unitHeight = 42, 34 // width and height of a unit of CloudWatch's grid, in pixels
	points             = 120    // one per minute
	outageFrom         = 78     // the minute in which Redis becomes unavailable
	outageTo           = 88     // the minute in which Redis is available again
	footer             = 30     // height of the line below the dashboard, in pixels
)

// colours returns the colours of the lines, in order.
func colours() []string {
	return []string{"#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd"}
}

// level holds a metric's example values: while Redis is available, and during the outage.
type level struct{ normal, outage float64 }

// levels returns the example values of each metric. A key is the metric's name, or its name and a
// statistic.
func levels() map[string]level {
	return map[string]level{
		"lateness p50": {3, 4}, "lateness p99": {14, 160}, "lateness Maximum": {40, 900}, "depth": {5200, 5200},
		"oldest_due": {20, 600},
		"enqueued":   {900, 900}, "dispatched": {890, 860}, "returned": {0, 30}, "reclaimed": {0, 12}, "died": {0, 0},
		"dead": {2, 2}, "outbox": {0, 760},
		"heartbeat": {60, 0}, "requests": {2400, 2350}, "latency": {9, 55}, "degraded": {0, 800},
		"allowed": {2100, 2000}, "denied": {160, 90}, "shadow_denied": {40, 0},
		"lock_wait p50": {2, 0}, "lock_wait p99": {60, 0}, "lock_hold p50": {300, 0}, "lock_hold p99": {2200, 0},
		"Count": {3400, 3350}, "4xx": {170, 100}, "5xx": {0, 60}, "used_memory": {410e6, 410e6},
		"maxmemory": {1100e6, 1100e6}, "connected_clients": {70, 5},
		"blocked_clients": {9, 0}, "evicted_keys": {0, 0}, "instantaneous_ops_per_sec": {310, 0},
		"ConcurrentExecutions": {6, 9}, "Throttles": {0, 0}, "Errors": {0, 0},
	}
}

// levelOf returns the level of a line, or false if there is none.
func levelOf(s series) (level, bool) {
	all := levels()
	if l, ok := all[s.metric+" "+s.stat]; ok {
		return l, true
	}
	l, ok := all[s.metric]
	return l, ok
}

// values returns one value per minute for a line. A value is the line's example value with a small
// variation, so that the line looks like a measurement. The variation is not random, so that each
// run draws the same picture.
func values(s series, nth int) []float64 {
	l, _ := levelOf(s)
	out := make([]float64, points)
	for i := range out {
		v := l.normal
		if i >= outageFrom && i < outageTo {
			v = l.outage
		}
		phase := float64(len(s.metric)*7+len(s.label)*3+nth*11) / 5
		ripple := 0.06*math.Sin(float64(i)/5+phase) + 0.04*math.Sin(float64(i)*1.7+2*phase)
		if s.metric == "heartbeat" || s.metric == "maxmemory" || s.metric == "dead" {
			ripple = 0
		}
		out[i] = v * (1 + ripple)
	}
	return out
}

// draw returns the dashboard as SVG.
func draw(widgets []widget) string {
	width, height := 24*column, 0
	for _, w := range widgets {
		height = max(height, (w.y+w.height)*unitHeight)
	}
	var b strings.Builder
	fmt.Fprintf(&b,
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" `+
			`font-family="system-ui, sans-serif" font-size="10">`+"\n", width, height+footer)
	b.WriteString("<title>Sluice's CloudWatch dashboard, with example values</title>\n")
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#f4f5f7"/>`+"\n", width, height+footer)
	for _, w := range widgets {
		if w.heading != "" {
			fmt.Fprintf(&b, `<text x="%d" y="%d" font-size="16" font-weight="600" fill="#16191f">%s</text>`+"\n",
				w.x*column+8, w.y*unitHeight+23, html.EscapeString(w.heading))
			continue
		}
		b.WriteString(graph(w))
	}
	fmt.Fprintf(&b,
		`<text x="8" y="%d" fill="#545b64">Drawn from terraform/module/dashboard.json.tftpl. `+
			`The values are examples: two hours, with Redis unavailable for ten minutes.</text>`+
			"\n</svg>\n", height+20)
	return b.String()
}

// graph returns a widget as SVG: a frame, the title, an axis, the lines and their labels.
func graph(w widget) string {
	var b strings.Builder
	left, top := w.x*column+4, w.y*unitHeight+4
	width, height := w.width*column-8, w.height*unitHeight-8
	fmt.Fprintf(&b,
		`<g transform="translate(%d %d)"><rect width="%d" height="%d" rx="3" fill="#fff" stroke="#d5dbdb"/>`, left, top,
		width, height)
	fmt.Fprintf(&b,
		`<text x="10" y="18" font-size="12" font-weight="600" fill="#16191f">%s`+
			`<tspan font-weight="400" fill="#545b64"> (%s)</tspan></text>`+"\n",
		html.EscapeString(w.title), html.EscapeString(w.unit))

	lines, most := make([][]float64, len(w.series)), 1.0
	for i, s := range w.series {
		lines[i] = values(s, i)
		for _, v := range lines[i] {
			most = max(most, v*1.15)
		}
	}
	const x0, y0 = 46.0, 32.0
	plotWidth, plotHeight := float64(width)-x0-10, float64(height)-y0-40
	for i := range 3 {
		y := y0 + plotHeight*float64(i)/2
		fmt.Fprintf(&b, `<line x1="%g" x2="%g" y1="%.1f" y2="%.1f" stroke="#eaeded"/>`, x0, x0+plotWidth, y, y)
		fmt.Fprintf(&b, `<text x="%g" y="%.1f" text-anchor="end" fill="#545b64">%s</text>`, x0-5, y+3,
			short(most*float64(2-i)/2))
	}
	at, row := 10.0, height-22
	for i, s := range w.series {
		colour := colours()[i%len(colours())]
		path := make([]string, points)
		for k, v := range lines[i] {
			path[k] = fmt.Sprintf("%.1f,%.1f", x0+plotWidth*float64(k)/(points-1), y0+plotHeight*(1-v/most))
		}
		fmt.Fprintf(&b, `<polyline fill="none" stroke="%s" stroke-width="1.3" points="%s"/>`, colour,
			strings.Join(path, " "))
		long := 22 + 5.3*float64(len(s.label))
		if at+long > float64(width) {
			at, row = 10, row+12
		}
		fmt.Fprintf(&b,
			`<rect x="%g" y="%d" width="8" height="8" fill="%s"/><text x="%g" y="%d" fill="#16191f">%s</text>`+"\n",
			at, row-8, colour, at+11, row, html.EscapeString(s.label))
		at += long
	}
	b.WriteString("</g>\n")
	return b.String()
}

// short returns a number with at most three digits and a unit.
func short(v float64) string {
	switch {
	case v >= 1e9:
		return fmt.Sprintf("%.1fG", v/1e9)
	case v >= 1e6:
		return fmt.Sprintf("%.0fM", v/1e6)
	case v >= 1e4:
		return fmt.Sprintf("%.0fk", v/1e3)
	default:
		return fmt.Sprintf("%.0f", v)
	}
}
