package report

import (
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

const width, height = 8 * vg.Inch, 4 * vg.Inch

// Bar is one bar of a chart.
type Bar struct {
	Label string
	Value float64
}

// Bars writes a bar chart as an SVG file. Labels that begin with "sluice" get Sluice's colour.
func Bars(path, title, unit string, bars []Bar) error {
	p := plot.New()
	p.Title.Text, p.Y.Label.Text = title, unit
	labels := make([]string, len(bars))
	for i, b := range bars {
		chart, err := plotter.NewBarChart(plotter.Values{b.Value}, vg.Points(28))
		if err != nil {
			return fmt.Errorf("error drawing a bar: %w", err)
		}
		chart.XMin, chart.LineStyle.Width = float64(i), 0
		chart.Color = color.RGBA{R: 150, G: 160, B: 175, A: 255}
		if len(b.Label) >= 6 && b.Label[:6] == "sluice" {
			chart.Color = color.RGBA{R: 20, G: 120, B: 160, A: 255}
		}
		p.Add(chart)
		labels[i] = b.Label
	}
	p.NominalX(labels...)
	p.Y.Min = 0
	return save(p, path)
}

// Distribution writes cumulative distributions of durations as an SVG file. The axis of durations
// is in ms and logarithmic.
func Distribution(path, title string, names []string, samples map[string][]float64) error {
	const least = 0.01
	var lines []any
	for _, name := range names {
		sorted := slices.Sorted(slices.Values(samples[name]))
		points := make(plotter.XYs, len(sorted))
		for i, v := range sorted {
			points[i] = plotter.XY{X: math.Max(v, least), Y: float64(i+1) / float64(len(sorted)) * 100}
		}
		lines = append(lines, name, points)
	}
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, "ms", "cumulative %"
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Legend.Top, p.Legend.Left = true, true
	if err := plotutil.AddLines(p, lines...); err != nil {
		return fmt.Errorf("error drawing a distribution: %w", err)
	}
	return save(p, path)
}

// Curves writes an SVG file with one curve for each name. A curve shows how a quantity depends on
// the size of the store. The axis of sizes is logarithmic.
func Curves(path, title, unit string, names []string, curves map[string][][2]float64) error {
	var lines []any
	for _, name := range names {
		points := make(plotter.XYs, len(curves[name]))
		for i, v := range curves[name] {
			points[i] = plotter.XY{X: v[0], Y: v[1]}
		}
		lines = append(lines, name, points)
	}
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, "entries in the store", unit
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Y.Min = 0
	if err := plotutil.AddLinePoints(p, lines...); err != nil {
		return fmt.Errorf("error drawing curves: %w", err)
	}
	p.Y.Min = 0
	return save(p, path)
}

func save(p *plot.Plot, path string) error {
	if err := p.Save(width, height, path); err != nil {
		return fmt.Errorf("error writing the plot %s: %w", path, err)
	}
	return nil
}
