// This file reads the directives for robots in a page's head or headers. Their syntax is a
// convention of search engines; no standard defines it.

package link

import (
	"slices"
	"strings"
)

// Directives are a page's requests to robots.
type Directives struct {
	NoIndex   bool // do not show the page in results
	NoFollow  bool // do not follow its links
	NoArchive bool // do not keep a copy
}

// Merge returns the stricter of both for each wish.
func (d Directives) Merge(e Directives) Directives {
	return Directives{d.NoIndex || e.NoIndex, d.NoFollow || e.NoFollow, d.NoArchive || e.NoArchive}
}

func (d *Directives) add(word string) {
	switch strings.ToLower(word) {
	case "noindex":
		d.NoIndex = true
	case "nofollow":
		d.NoFollow = true
	case "none":
		d.NoIndex, d.NoFollow = true, true
	case "noarchive":
		d.NoArchive = true
	}
}

// RobotsTag reads the values of a response's X-Robots-Tag headers. A value may be addressed to one
// robot, "examplebot: noindex, nofollow"; it counts if agent is that product token, ignoring case.
func RobotsTag(values []string, agent string) Directives {
	var d Directives
	for _, value := range values {
		forUs := true
		for part := range strings.SplitSeq(value, ",") {
			if name, rest, ok := strings.Cut(part, ":"); ok && !hasValue(name) {
				forUs = strings.EqualFold(strings.TrimSpace(name), agent)
				part = rest
			}
			if forUs {
				d.add(strings.TrimSpace(part))
			}
		}
	}
	return d
}

// hasValue reports whether name is a directive with a value, rather than the name of a robot.
func hasValue(name string) bool {
	return slices.Contains([]string{"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"}, strings.ToLower(strings.TrimSpace(name)))
}
