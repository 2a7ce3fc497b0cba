package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// series is one line of a graph.
type series struct {
	name string
	x, y []float64
}

func (s *series) add(x, y float64) { s.x, s.y = append(s.x, x), append(s.y, y) }

// graph is one picture, and the words around it.
type graph struct {
	name, title, text, x, y string
	logX                    bool
	series                  []series
	figures                 []string
}

var colours = []string{"#0b6e99", "#d9480f", "#2b8a3e", "#862e9c", "#e67700", "#495057", "#c2255c"}

// svg draws the graph.
func (g *graph) svg() string {
	const width, height, left, right, top, bottom = 760, 380, 64, 190, 44, 52
	minX, maxX, maxY := math.Inf(1), math.Inf(-1), 0.0
	scale := func(x float64) float64 {
		if g.logX {
			return math.Log10(max(x, 1e-9))
		}
		return x
	}
	for _, s := range g.series {
		for i := range s.x {
			minX, maxX, maxY = min(minX, scale(s.x[i])), max(maxX, scale(s.x[i])), max(maxY, s.y[i])
		}
	}
	if maxX <= minX {
		maxX = minX + 1
	}
	step := nice(maxY / 5)
	maxY = math.Max(step, math.Ceil(maxY/step)*step)
	px := func(x float64) float64 { return left + (scale(x)-minX)/(maxX-minX)*(width-left-right) }
	py := func(y float64) float64 { return height - bottom - y/maxY*(height-top-bottom) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/><text x="%d" y="22" font-size="14">%s</text>`+"\n", width, height, left, html.EscapeString(g.title))
	for y := 0.0; y <= maxY+step/2; y += step {
		fmt.Fprintf(&b, `<path d="M%d %.1fH%d" stroke="#dee2e6"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", left, py(y), width-right, left-6, py(y)+4, number(y))
	}
	ticks := map[float64]bool{}
	for _, s := range g.series {
		for _, x := range s.x {
			if len(s.x) <= 12 || math.Mod(x, 1) == 0 {
				ticks[x] = true
			}
		}
	}
	for x := range ticks {
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", px(x), height-bottom+18, number(x))
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", (left+width-right)/2, height-12, html.EscapeString(g.x))
	fmt.Fprintf(&b, `<text transform="translate(16 %d) rotate(-90)" text-anchor="middle">%s</text>`+"\n", (top+height-bottom)/2, html.EscapeString(g.y))
	for i, s := range g.series {
		colour := colours[i%len(colours)]
		var points []string
		for j := range s.x {
			points = append(points, fmt.Sprintf("%.1f,%.1f", px(s.x[j]), py(s.y[j])))
		}
		fmt.Fprintf(&b, `<polyline fill="none" stroke="%s" stroke-width="2" points="%s"/>`+"\n", colour, strings.Join(points, " "))
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="12" height="12" fill="%s"/><text x="%d" y="%d">%s</text>`+"\n",
			width-right+16, top+i*20, colour, width-right+34, top+i*20+10, html.EscapeString(s.name))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// nice rounds up to 1, 2 or 5 times a power of ten.
func nice(v float64) float64 {
	if v <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if v <= m*power {
			return m * power
		}
	}
	return 10 * power
}

func number(v float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", v), "0"), ".")
}
