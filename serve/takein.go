// This file takes in exports, which name crawls.

package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/seed-7440039f/frontier"
)

// errNames is wrapped by the error of an import whose names of crawls do not go with ours.
var errNames = errors.New("serve: names of crawls")

// Import is the frontier's. It refuses exports whose names of crawls do not go with those that
// there are, and takes the names over.
func (s *Service) Import(ctx context.Context, r io.Reader, o frontier.ImportOptions) (frontier.Imported, error) {
	in := &namesRead{s: s, in: r}
	x, err := s.f.Import(ctx, in, o)
	if in.conflict != nil {
		return x, in.conflict
	}
	return x, errors.Join(err, s.loadNames(context.WithoutCancel(ctx)))
}

// postImport takes in an export, or a list of URLs.
func (s *Service) postImport(c *call) error {
	in := &namesRead{s: s, in: deadlined{c}}
	err := c.console("/api/import", c.r.URL.RawQuery, in)
	if in.conflict != nil {
		return &problem{kind: "conflict", status: http.StatusConflict, detail: in.conflict.Error()}
	}
	if err != nil {
		return err
	}
	return s.loadNames(context.WithoutCancel(c.ctx))
}

// namesRead reads an export, and breaks off if its names of crawls do not go with those that there
// are: URLs of two crawls would be one. An import reads all before it changes anything.
type namesRead struct {
	s        *Service
	in       io.Reader
	line     []byte // as far as it was read, and not much more than longestName
	conflict error
}

// longestName is how long the line of a name may be.
const longestName = 4 << 10

// Read is io.Reader's.
func (r *namesRead) Read(p []byte) (int, error) {
	if r.conflict != nil {
		return 0, r.conflict
	}
	n, err := r.in.Read(p)
	for b := p[:n]; ; {
		part, rest, whole := bytes.Cut(b, []byte{'\n'})
		if len(r.line) <= longestName {
			r.line = append(r.line, part[:min(len(part), longestName+1)]...)
		}
		if !whole && !errors.Is(err, io.EOF) {
			return n, err
		}
		if r.conflict = r.s.nameConflict(r.line); r.conflict != nil {
			return 0, r.conflict
		}
		if r.line, b = r.line[:0], rest; !whole {
			return n, err
		}
	}
}

// nameConflict says what is wrong with a line, if it gives a crawl a name.
func (s *Service) nameConflict(line []byte) error {
	if len(line) > longestName || !bytes.Contains(line, []byte(`"value"`)) {
		return nil
	}
	var v struct {
		Value string
		Data  []byte
	}
	if err := json.Unmarshal(line, &v); err != nil { // the import says what is wrong with it
		return nil
	}
	if !strings.HasPrefix(v.Value, crawlKey) {
		return nil
	}
	number, err := strconv.ParseUint(string(v.Data), 10, 32)
	if err != nil {
		return fmt.Errorf("%w: %q is %.40q; want a number", errNames, v.Value, v.Data)
	}
	name, id := strings.TrimPrefix(v.Value, crawlKey), uint32(number)
	n := &s.names
	n.mu.RLock()
	defer n.mu.RUnlock()
	if has, ok := n.crawl[name]; ok && has != id && (name != DefaultCrawl || s.hasURLs(has)) {
		return fmt.Errorf("%w: crawl %q has number %d here, and %d in the export: import it into a new server", errNames, name, has, id)
	}
	if has, ok := n.name[id]; ok && has != name {
		return fmt.Errorf("%w: number %d is crawl %q here, and %q in the export: import it into a new server", errNames, id, has, name)
	}
	return nil
}

// hasURLs reports whether a crawl ever had URLs.
func (s *Service) hasURLs(id uint32) bool {
	x, _ := s.f.CrawlStats(id)
	return x.Added > 0 || x.Waiting+x.Scheduled+x.Leased+x.Finished > 0
}
