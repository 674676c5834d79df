// This file prints the settings of a crawl as the configuration file that makes them.

package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
)

// printConfig writes all options. Those that say nothing, beside the others or because
// they were not given and have no default, are comments.
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

// stated is a value as it stands in a file.
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

// short is a time without zeros at its end: 24h, not 24h0m0s.
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
