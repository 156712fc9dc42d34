package web

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/engine/model"
)

// Size of a chart's drawing area, in its own units; the page scales it.
const (
	chartWidth  = 6000
	chartHeight = 1200
)

// leastSpan is the minimum time range of a chart, however new the database is.
const leastSpan = time.Hour

// chart is a line chart over time.
type chart struct {
	Title    string
	Latest   string // the newest value
	Most     string // the highest value
	Lines    []string
	Areas    []string // the lines, closed down to zero
	From, To time.Time
	Width    int
	Height   int
	// Times, in steps since First, and Values are for the script that shows the
	// value under the pointer.
	First         time.Time
	Step          time.Duration
	Times, Values string
}

// Summary describes the chart in words.
func (c chart) Summary() string {
	return fmt.Sprintf("%s over the last %s: now %s, at most %s", c.Title, span(c.To.Sub(c.From)), c.Latest, c.Most)
}

// measure is a figure that a chart shows for every sample that has it.
type measure struct {
	title  string
	known  func(model.Sample) bool // nil for always
	value  func(model.Sample) float64
	format func(float64) string
}

func measures() []measure {
	archived := func(s model.Sample) bool { return s.Archive != nil }
	return []measure{
		{"Size", nil, func(s model.Sample) float64 { return float64(s.SizeBytes) }, func(v float64) string { return formatBytes(v) }},
		{"Connections", nil, func(s model.Sample) float64 { return float64(s.Connections) }, func(v float64) string { return fmt.Sprintf("%.0f", v) }},
		{"Commits a second", nil, func(s model.Sample) float64 { return s.Commits }, formatRate},
		{"WAL lag", archived, func(s model.Sample) float64 { return float64(s.Archive.WALLag) }, func(v float64) string { return formatBytes(v) }},
		{"Recovery point (RPO)", archived, func(s model.Sample) float64 { return s.Archive.RPO.Seconds() }, formatSeconds},
	}
}

// of returns the samples that have the figure.
func (m measure) of(samples []model.Sample) []model.Sample {
	if m.known == nil {
		return samples
	}
	return slices.DeleteFunc(slices.Clone(samples), func(s model.Sample) bool { return !m.known(s) })
}

// formatSeconds formats a duration with suitable precision.
func formatSeconds(v float64) string {
	if v >= 60 {
		return span(time.Duration(v * float64(time.Second)))
	}
	if v >= 1 {
		return fmt.Sprintf("%.1f s", v)
	}
	return fmt.Sprintf("%.0f ms", 1000*v)
}

func formatRate(v float64) string {
	if v >= 10 || v == 0 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.2g", v)
}

// mostPoints is the maximum number of points in a line: more cannot be told
// apart.
const mostPoints = 300

// charts draws the samples of a database; without samples it returns nothing.
func charts(samples []model.Sample, series model.Series, now time.Time) []chart {
	if len(samples) == 0 {
		return nil
	}
	step := series.Step * time.Duration((series.Keep+mostPoints-1)/mostPoints)
	samples = coarser(samples, step)
	from := now.Add(-time.Duration(series.Keep) * series.Step)
	if first := samples[0].At; first.After(from) {
		from = first
	}
	if least := now.Add(-leastSpan); from.After(least) {
		from = least
	}
	all := make([]chart, 0, len(measures()))
	for _, m := range measures() {
		if known := m.of(samples); len(known) > 0 {
			all = append(all, m.draw(known, step, from, now))
		}
	}
	return all
}

// coarser merges samples into longer steps.
func coarser(samples []model.Sample, step time.Duration) []model.Sample {
	var coarse []model.Sample
	count := 0
	for _, s := range samples {
		begin := s.At.Truncate(step)
		if n := len(coarse); n == 0 || !coarse[n-1].At.Equal(begin) {
			coarse, count = append(coarse, model.Sample{At: begin}), 0
		}
		count++
		coarse[len(coarse)-1].Add(s, count)
	}
	return coarse
}

func (m measure) draw(samples []model.Sample, step time.Duration, from, to time.Time) chart {
	most := 0.0
	for _, s := range samples {
		most = max(most, m.value(s))
	}
	newest := samples[len(samples)-1]
	c := chart{
		Title: m.title, Latest: m.format(m.value(newest)), Most: m.format(most),
		From: from, To: to, Width: chartWidth, Height: chartHeight,
		First: samples[0].At.Add(step / 2), Step: step,
	}
	if to.Sub(newest.At) > 2*step { // the database is down, or nothing receives its WAL
		c.Latest = "unknown"
	}
	x := func(at time.Time) float64 {
		part := float64(at.Sub(from)) / float64(to.Sub(from))
		return math.Max(0, math.Min(1, part)) * chartWidth
	}
	y := func(value float64) float64 { // some space above the highest value
		return chartHeight - value/math.Max(most, 1e-9)*chartHeight*0.9
	}
	for begin := 0; begin < len(samples); {
		end := begin + 1
		for end < len(samples) && samples[end].At.Sub(samples[end-1].At) <= step+step/2 {
			end++
		}
		c.addLine(m, samples[begin:end], step, x, y)
		begin = end
	}
	times, values := make([]string, len(samples)), make([]string, len(samples))
	for i, s := range samples {
		times[i], values[i] = strconv.FormatInt(int64(s.At.Sub(samples[0].At)/step), 10), m.format(m.value(s))
	}
	c.Times, c.Values = strings.Join(times, " "), strings.Join(values, ";")
	return c
}

// addLine draws samples without a gap between them. Each covers its whole step,
// so that even a single sample is visible.
func (c *chart) addLine(m measure, samples []model.Sample, step time.Duration, x func(time.Time) float64, y func(float64) float64) {
	var line pen
	left, right := x(samples[0].At), x(samples[len(samples)-1].At.Add(step))
	line.to(left, y(m.value(samples[0])))
	for _, s := range samples {
		line.to(x(s.At.Add(step/2)), y(m.value(s)))
	}
	line.to(right, y(m.value(samples[len(samples)-1])))
	c.Lines = append(c.Lines, line.String())
	c.Areas = append(c.Areas, fmt.Sprintf("%sV%dH%.0fZ", line.String(), chartHeight, left))
}

// pen builds an SVG path in whole units and compact syntax: a page has
// thousands of points.
type pen struct {
	strings.Builder
	x, y int
}

func (p *pen) to(x, y float64) {
	right, down := int(math.Round(x)), int(math.Round(y))
	switch begun := p.Len() > 0; {
	case !begun:
		fmt.Fprintf(p, "M%d %d", right, down)
	case down == p.y:
		fmt.Fprintf(p, "h%d", right-p.x)
	case down < p.y:
		fmt.Fprintf(p, "l%d%d", right-p.x, down-p.y)
	default:
		fmt.Fprintf(p, "l%d %d", right-p.x, down-p.y)
	}
	p.x, p.y = right, down
}
