// Plot draws the output of bench -json: for each series the latency of its calls over time, and
// memory and disk over URLs.
//
//	go run ./bench/plot -o bench.svg bench.json
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// point and series are the parts of bench's JSON that are drawn.
type point struct {
	Seconds float64               `json:"s"`
	URLs    float64               `json:"urls"`
	Calls   map[string][3]float64 `json:"calls"` // p50, p99, longest, in microseconds
	Anon    float64               `json:"anon_bytes"`
	Heap    float64               `json:"heap_bytes"`
	Memory  float64               `json:"frontier_bytes"`
	Disk    float64               `json:"disk_bytes"`
}

type series struct {
	Scenario string  `json:"scenario"`
	Name     string  `json:"name"`
	Points   []point `json:"points"`
}

func main() { os.Exit(run(os.Args[1:], os.Stderr)) }

func run(args []string, stderr io.Writer) int {
	fs := flag.NewFlagSet("plot", flag.ContinueOnError)
	fs.SetOutput(stderr)
	out := fs.String("o", "bench.svg", "`file` to write")
	only := fs.String("series", "", "comma `list` of series, as ingest.add; empty: all")
	fs.Usage = func() {
		fmt.Fprintln(stderr, "Usage: go run ./bench/plot [flags] FILE\n\nDraws the series of the JSON in FILE.\n\nFlags:")
		fs.PrintDefaults()
	}
	if err := fs.Parse(args); err != nil {
		return 2
	}
	if fs.NArg() != 1 {
		fmt.Fprintf(stderr, "plot: %d files given; want 1 (-h lists the flags)\n", fs.NArg())
		return 2
	}
	if err := plot(fs.Arg(0), *out, *only); err != nil {
		fmt.Fprintln(stderr, "plot:", err)
		return 1
	}
	return 0
}

func plot(in, out, only string) error {
	text, err := os.ReadFile(in)
	if err != nil {
		return err
	}
	var rep struct {
		Series []series `json:"series"`
	}
	if err := json.Unmarshal(text, &rep); err != nil {
		return fmt.Errorf("%s: %w", in, err)
	}
	if only != "" {
		wanted, names := strings.Split(only, ","), []string(nil)
		rep.Series = slices.DeleteFunc(rep.Series, func(s series) bool {
			name := s.Scenario + "." + s.Name
			names = append(names, name)
			return !slices.Contains(wanted, name)
		})
		if len(rep.Series) == 0 {
			return fmt.Errorf("%s: no series of that name; there are %s", in, strings.Join(names, ", "))
		}
	}
	if len(rep.Series) == 0 {
		return fmt.Errorf("%s has no series", in)
	}
	return os.WriteFile(out, []byte(draw(rep.Series)), 0o644)
}

// draw makes two panels for each series, one line of panels below the other.
func draw(all []series) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">`+"\n",
		2*panelWidth, len(all)*panelHeight)
	b.WriteString(`<rect width="100%" height="100%" fill="white"/>` + "\n")
	for i, s := range all {
		name := s.Scenario + " " + s.Name
		latencies(s).draw(&b, 0, i*panelHeight, name+": latency (us) over time (s)")
		sizes(s).draw(&b, panelWidth, i*panelHeight, name+": memory and disk (MB) over URLs")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// latencies are p50, p99 and the longest of each kind of call.
func latencies(s series) *chart {
	c := &chart{logarithmic: true}
	var kinds []string
	for _, p := range s.Points {
		for call := range p.Calls {
			if !slices.Contains(kinds, call) {
				kinds = append(kinds, call)
			}
		}
	}
	slices.Sort(kinds)
	for _, call := range kinds {
		for i, what := range []string{"p50", "p99", "longest"} {
			l := line{name: call + " " + what}
			for _, p := range s.Points {
				if q, ok := p.Calls[call]; ok && q[i] > 0 {
					l.points = append(l.points, [2]float64{p.Seconds, q[i]})
				}
			}
			c.add(l)
		}
	}
	return c
}

func sizes(s series) *chart {
	c := &chart{}
	for _, what := range []struct {
		name  string
		value func(p point) float64
	}{
		{"anonymous memory", func(p point) float64 { return p.Anon }},
		{"Go heap", func(p point) float64 { return p.Heap }},
		{"Stats.MemoryBytes", func(p point) float64 { return p.Memory }},
		{"disk", func(p point) float64 { return p.Disk }},
	} {
		l := line{name: what.name}
		for _, p := range s.Points {
			if v := what.value(p); v > 0 {
				l.points = append(l.points, [2]float64{p.URLs, v / 1e6})
			}
		}
		c.add(l)
	}
	return c
}
