// This file gives a frontier lists of changed URLs.

package revisit

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/urlnorm"
)

// maxChanges is how many URLs are added at once.
const maxChanges = 1000

// Changes gives a frontier hints of a list of URLs that are said to have changed at a
// time, one a line, as sites tell of by IndexNow; blank lines are passed over. Claims
// are weighed by the record of each host, so that a list of all there is makes no storm.
// URLs that are not known are admitted: check before what may be listed. Lines that are
// no URL are reported, joined, and the others taken; any other error ends it. It returns
// how many URLs were taken.
func Changes(ctx context.Context, f *frontier.Frontier, list io.Reader, at time.Time) (taken int, err error) {
	var bad []error
	spelling := urlnorm.New()
	var entries []frontier.Entry
	add := func() error {
		_, err := f.Add(ctx, entries...)
		taken += len(entries)
		entries = entries[:0]
		return err
	}
	lines := bufio.NewScanner(list)
	lines.Buffer(nil, frontier.MaxURL+1)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" {
			continue
		}
		u, err := spelling.Normalize(line)
		if err != nil {
			if len(bad) < 10 {
				bad = append(bad, fmt.Errorf("revisit: changes: line %d: %w", n, err))
			}
			continue
		}
		entries = append(entries, frontier.Entry{URL: u, Hint: true, NotBefore: at})
		if len(entries) == maxChanges {
			if err := add(); err != nil {
				return taken, err
			}
		}
	}
	if err := add(); err != nil {
		return taken, err
	}
	return taken, errors.Join(append(bad, lines.Err())...)
}
