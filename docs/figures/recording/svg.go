// This file draws what terminals showed as an SVG picture that moves by CSS alone.

package main

import (
	"fmt"
	"html"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Sizes in pixels.
const (
	cell    = 8.4 // of a character
	leading = 19.0
	margin  = 14.0
	bar     = 30.0 // above the upper terminal
	gap     = 20.0 // between the two
)

// lasts is how long the last frame stays.
const lasts = 5 * time.Second

// interval is a time in which something is shown.
type interval struct{ from, to time.Duration }

// shown is a line of text at a height, and when it is there.
type shown struct {
	y    float64
	text string
	when []interval
}

// draw returns the picture of frames.
func draw(frames []frame) string {
	start := frames[0].at
	whole := frames[len(frames)-1].at + lasts - start
	middle := bar + margin + upperRows*leading
	var lines []*shown
	at := map[string]*shown{}
	for i, f := range frames {
		span := interval{f.at - start, whole}
		if i+1 < len(frames) {
			span.to = frames[i+1].at - start
		}
		for top, screen := range map[float64]string{bar + margin: f.upper, middle + gap: f.lower} {
			for row, text := range strings.Split(strings.TrimRight(screen, "\n"), "\n") {
				if strings.TrimSpace(escapes.ReplaceAllString(text, "")) == "" {
					continue
				}
				y := top + float64(row+1)*leading - 5
				key := fmt.Sprint(y, text)
				l := at[key]
				if l == nil {
					l = &shown{y: y, text: text}
					at[key] = l
					lines = append(lines, l)
				}
				if n := len(l.when); n > 0 && l.when[n-1].to == span.from {
					l.when[n-1].to = span.to
				} else {
					l.when = append(l.when, span)
				}
			}
		}
	}
	width, height := 2*margin+columns*cell, middle+gap+lowerRows*leading+margin
	var style, body strings.Builder
	for i, l := range lines {
		n, stays := escapes.ReplaceAllString(l.text, ""), l.when[len(l.when)-1].to == whole
		n = strings.TrimRight(n, " ")
		class := ""
		if len(l.when) > 1 || l.when[0] != (interval{0, whole}) {
			class = fmt.Sprintf(` class="a" style="animation-name:k%d%s"`, i, map[bool]string{false: ";visibility:hidden"}[stays])
			fmt.Fprintf(&style, "@keyframes k%d{%s}\n", i, keyframes(l.when, whole))
		}
		fmt.Fprintf(&body, "<text x=\"%g\" y=\"%.1f\" textLength=\"%.1f\"%s>%s</text>\n", margin, l.y, float64(utf8.RuneCountInString(n))*cell, class, spans(l.text))
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img" aria-label="A crawl is killed with kill -9, resumed, and ends with each page fetched once">
<style>
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#d7dce2;white-space:pre}
.a{animation-duration:%.1fs;animation-timing-function:step-end;animation-iteration-count:infinite}
.b{font-weight:bold}.d{fill:#8b949e}.g{fill:#56d364}.y{fill:#e3b341}.r{fill:#ff7b72}.u{fill:#79c0ff}
%s@media(prefers-reduced-motion:reduce){.a{animation:none}}
</style>
<rect x=".5" y=".5" width="%.0f" height="%.0f" rx="8" fill="#0d1117" stroke="#57606a"/>
<circle cx="20" cy="17" r="5" fill="#ff5f57"/><circle cx="38" cy="17" r="5" fill="#febc2e"/><circle cx="56" cy="17" r="5" fill="#28c840"/>
<path d="M1 %.1fH%.0fM1 %.1fH%.0f" stroke="#30363d"/>
%s</svg>
`, width, height, width, height, whole.Seconds(), style.String(), width-1, height-1, bar+2, width-1, middle+gap/2, width-1, body.String())
}

// keyframes shows something in its times.
func keyframes(when []interval, whole time.Duration) string {
	percent := func(d time.Duration) string {
		return strconv.FormatFloat(100*d.Seconds()/whole.Seconds(), 'f', 2, 64) + "%"
	}
	var b strings.Builder
	if when[0].from > 0 {
		b.WriteString("0%{visibility:hidden}")
	}
	for _, w := range when {
		b.WriteString(percent(w.from) + "{visibility:visible}")
		if w.to < whole {
			b.WriteString(percent(w.to) + "{visibility:hidden}")
		}
	}
	return b.String()
}

// spans is a line of a terminal with its colours as classes.
func spans(line string) string {
	var b strings.Builder
	var bold, faint bool
	colour := ""
	put := func(text string) {
		class := colour
		if faint {
			class = "d"
		}
		if bold {
			class = strings.TrimSpace(class + " b")
		}
		switch text = html.EscapeString(text); {
		case text == "":
		case class == "":
			b.WriteString(text)
		default:
			fmt.Fprintf(&b, `<tspan class="%s">%s</tspan>`, class, text)
		}
	}
	line = strings.TrimRight(line, " ")
	rest := 0
	for _, at := range escapes.FindAllStringIndex(line, -1) {
		put(line[rest:at[0]])
		rest = at[1]
		for code := range strings.SplitSeq(line[at[0]+2:at[1]-1], ";") {
			switch code {
			case "", "0":
				bold, faint, colour = false, false, ""
			case "1":
				bold = true
			case "2":
				faint = true
			case "22":
				bold, faint = false, false
			case "31", "32", "33", "34", "36", "39":
				colour = map[string]string{"31": "r", "32": "g", "33": "y", "34": "u", "36": "u"}[code]
			}
		}
	}
	put(line[rest:])
	return b.String()
}
