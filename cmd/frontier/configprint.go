// This file prints a crawl's settings as a configuration file that reproduces them.

package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
)

// printConfig writes all options. Those without effect, or neither given nor with a default, are
// commented out.
func (o *options) printConfig(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# Printed by frontier crawl -print-config; read by -config FILE, where flags count before it.\n")
	theme := ""
	for _, x := range o.all {
		if x.theme != theme {
			theme = x.theme
			fmt.Fprintf(&b, "\n##### %s\n", theme)
		}
		line, err := toml.Marshal(map[string]any{x.Name: x.now})
		if err != nil {
			return fmt.Errorf("%s: %w", x.Name, err)
		}
		fmt.Fprintf(&b, "\n# %s\n", strings.ReplaceAll(x.Usage, "`", ""))
		if x.off {
			b.WriteString("# ")
		}
		b.Write(line)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// stated returns the value as the file has it.
func (x *option) stated() any {
	s := x.Value.String()
	switch x.kind() {
	case boolean:
		return s == "true"
	case integer:
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return n
		}
	case number:
		if f, err := strconv.ParseFloat(s, 64); err == nil {
			return f
		}
	case duration:
		if d, err := time.ParseDuration(s); err == nil {
			return short(d)
		}
	case several:
		switch l := x.Value.(type) {
		case *list:
			return append([]string{}, *l...)
		case *repeated:
			return append([]string{}, *l...)
		}
	}
	return s
}

// short formats a time without trailing zeros: 24h, not 24h0m0s.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
