// This file remembers payloads across restarts: what a Writer knew is in the indexes
// of its folder.

package warc

import (
	"bufio"
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// recall fills the memory of payloads from the folder's indexes, the latest first, up to
// Options.Remember. An index that cannot be read costs revisit records, and no more
// than a word in the log.
func (w *Writer) recall() {
	if w.opts.Remember == 0 {
		return
	}
	paths, err := filepath.Glob(filepath.Join(escapeGlob(w.dir), "*.cdxj"))
	if err != nil {
		return // the pattern is well-formed
	}
	slices.SortFunc(paths, func(a, b string) int { return cmp.Or(modified(b)-modified(a), strings.Compare(b, a)) })
	known := map[string]bool{}
	var found []payload
	for _, path := range paths {
		if len(found) >= w.opts.Remember {
			break
		}
		of, err := payloadsOf(path)
		if err != nil {
			w.opts.Logger.Warn("an index cannot be read: payloads that it has are written again", "file", path, "error", err)
		}
		slices.SortStableFunc(of, func(a, b payload) int { return b.date.Compare(a.date) })
		for _, p := range of {
			if !known[p.digest] && len(found) < w.opts.Remember {
				known[p.digest] = true
				found = append(found, p)
			}
		}
	}
	for _, p := range slices.Backward(found) { // the oldest is forgotten first
		w.seen.add(p)
	}
}

// modified is when a file was changed last, in seconds.
func modified(path string) int {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return int(info.ModTime().Unix())
}

var emptyDigest = Digest(nil)

// payloadsOf are the payloads that an index has, as far as it can be read.
func payloadsOf(path string) (found []payload, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		l, bad := ParseIndexLine(lines.Text())
		if bad != nil {
			err = &fs.PathError{Op: "read", Path: path, Err: bad}
			continue
		}
		if l.Status != "" && l.MIME != "warc/revisit" && l.Digest != "" && l.Digest != emptyDigest {
			found = append(found, payload{digest: l.Digest, url: l.URL, date: l.Date})
		}
	}
	return found, cmp.Or(lines.Err(), err)
}
