// This file restores a Writer's memory of payloads after a restart, from the indexes of its folder.

package warc

import (
	"bufio"
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// recall fills the memory of payloads and captures from the folder's indexes, the latest first, up
// to Options.Remember. An unreadable index costs revisit records, and is only logged.
func (w *Writer) recall() {
	if w.opts.Remember == 0 {
		return
	}
	paths, err := filepath.Glob(filepath.Join(escapeGlob(w.dir), "*.cdxj"))
	if err != nil {
		return // the pattern is well-formed
	}
	slices.SortFunc(paths, func(a, b string) int { return cmp.Or(modified(b)-modified(a), strings.Compare(b, a)) })
	known, seen := map[string]payload{}, map[string]bool{}
	var found []payload
	var visits []visit
	for _, path := range paths {
		if len(found) >= w.opts.Remember && len(visits) >= w.opts.Remember {
			break
		}
		of, err := visitsOf(path)
		if err != nil {
			w.opts.Logger.Warn("an index cannot be read: its payloads may be written again", "file", path, "error", err)
		}
		slices.SortStableFunc(of, func(a, b visit) int { return b.date.Compare(a.date) })
		for _, v := range of {
			if _, ok := known[v.digest]; !ok && !v.revisit && v.digest != emptyDigest && len(found) < w.opts.Remember {
				known[v.digest] = v.payload
				found = append(found, v.payload)
			}
			if v.page && !seen[v.url] && len(visits) < w.opts.Remember {
				seen[v.url] = true
				visits = append(visits, v)
			}
		}
	}
	for _, p := range slices.Backward(found) { // the oldest is forgotten first
		w.seen.add(p.digest, p)
	}
	for _, v := range slices.Backward(visits) {
		p, ok := v.payload, true
		if v.revisit {
			p, ok = known[v.digest]
		}
		if ok {
			w.captures.set(v.url, p)
		}
	}
}

// visit is a line of an index: where a payload is, or that it was found again.
type visit struct {
	payload
	revisit bool
	page    bool // its status is one of success, or it is a revisit
}

// modified returns when a file was last changed, in seconds.
func modified(path string) int {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return int(info.ModTime().Unix())
}

var emptyDigest = Digest(nil)

// visitsOf returns the captures and revisits in an index, as far as it can be read.
func visitsOf(path string) (found []visit, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		l, bad := ParseIndexLine(lines.Text())
		offset, none := strconv.ParseInt(l.Offset, 10, 64)
		if bad = cmp.Or(bad, none); bad != nil {
			err = &fs.PathError{Op: "read", Path: path, Err: bad}
			continue
		}
		if l.Status == "" || l.Digest == "" || l.Filename != filepath.Base(l.Filename) {
			continue
		}
		v := visit{revisit: l.MIME == "warc/revisit"}
		v.page = v.revisit && l.Status == "304" || strings.HasPrefix(l.Status, "2")
		v.payload = payload{digest: l.Digest, url: l.URL, date: l.Date, file: filepath.Join(filepath.Dir(path), l.Filename), offset: offset}
		found = append(found, v)
	}
	return found, cmp.Or(lines.Err(), err)
}
