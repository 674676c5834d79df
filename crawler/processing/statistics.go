// This file counts answers by status, type, size, time and host, like Mercator's tag counters, and
// keeps the counts across restarts.
//
// A folder has stats.json, and stats-N.log with a line for each answer since stats.json was
// written, where N is given in stats.json. The line is written before the answer counts as handled.

package processing

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/internal/durablefs"
	"github.com/seed-7440039f/frontier/internal/media"
)

const (
	statisticsName = "stats.json"
	maxTypes       = 256     // media types counted separately
	maxStatsLog    = 1 << 20 // bytes of a log
	maxStatsAge    = time.Minute
)

// StatisticsOptions configure Statistics. The zero value is ready for use.
type StatisticsOptions struct {
	// Hosts is the number of hosts counted at once, and the maximum in a Report. Each takes about
	// 200 bytes. See Report.Hosts. Zero means 1,000.
	Hosts int
	// Now returns the time. Nil means time.Now.
	Now func() time.Time
}

// Statistics is a module that counts answers. It is safe for concurrent use.
type Statistics struct {
	dir  string
	opts StatisticsOptions

	mu      sync.Mutex
	report  Report    // guarded by mu, except Hosts
	hosts   *topHosts // guarded by mu
	number  int       // guarded by mu; of the log
	log     *os.File  // guarded by mu; nil: in memory, or closed
	logged  int       // guarded by mu; bytes of it
	written time.Time // guarded by mu; when stats.json was, or could not be
	faults  int       // guarded by mu; of writing it, in a row
	closed  bool      // guarded by mu
}

// answer is the counted part of an answer.
type answer struct {
	Status int           `json:"s"`
	Type   string        `json:"t"`
	Host   string        `json:"h"`
	Bytes  int64         `json:"b"`
	Took   time.Duration `json:"d"`
}

// OpenStatistics continues counting in folder dir, which it creates if necessary; if dir is empty,
// it counts in memory. No other Statistics may have the folder open. A folder of another version is
// reported as frontier.ErrVersion.
func OpenStatistics(dir string, o StatisticsOptions) (*Statistics, error) {
	o.Hosts = cmp.Or(o.Hosts, 1000)
	if o.Hosts < 1 {
		return nil, fmt.Errorf("processing: statistics: Hosts is %d; want >= 1", o.Hosts)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Statistics{dir: dir, opts: o, hosts: newTopHosts(o.Hosts), report: Report{Since: o.Now().UTC().Round(0)}}
	if dir == "" {
		return s, nil
	}
	if err := s.load(); err != nil {
		return nil, fmt.Errorf("processing: statistics: %w", err)
	}
	return s, nil
}

// Handle is a Handler: it counts an answer. With a folder, an answer survives kill -9 once Handle
// has returned. A page that is fetched again after a crash is counted again.
func (s *Statistics) Handle(_ context.Context, p *crawler.Page) error {
	a := answer{Status: p.Status, Type: mediaType(p), Host: p.Lease.Host, Bytes: p.Bytes, Took: p.Duration()}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.log != nil {
		line, err := json.Marshal(&a)
		if err != nil {
			return fmt.Errorf("processing: statistics: %w", err)
		}
		n, err := s.log.Write(append(line, '\n'))
		s.logged += n
		if err != nil {
			return fmt.Errorf("processing: statistics: %w", err)
		}
	}
	s.count(&a)
	if s.log != nil && (s.logged >= maxStatsLog*(1+s.faults) || s.opts.Now().Sub(s.written) >= maxStatsAge) {
		s.written = s.opts.Now()
		if s.save() != nil { // everything is in the log; there may be space later
			s.faults++
		} else {
			s.faults = 0
		}
	}
	return nil
}

// count adds an answer to the report.
func (s *Statistics) count(a *answer) {
	r := &s.report
	r.Total.add(a.Bytes)
	r.Status = addTo(r.Status, fmt.Sprint(a.Status), a.Bytes, 1000)
	r.Types = addTo(r.Types, a.Type, a.Bytes, maxTypes)
	r.Sizes = r.Sizes.add(a.Bytes)
	r.Millis = r.Millis.add(a.Took.Milliseconds())
	s.hosts.add(a.Host, a.Bytes)
}

// Report returns the counts so far.
func (s *Statistics) Report() Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reportLocked()
}

func (s *Statistics) reportLocked() Report {
	r := s.report.clone()
	r.Hosts = s.hosts.list()
	return r
}

// Close writes stats.json and ends the use of the folder. Handle fails from then on.
func (s *Statistics) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if s.log == nil {
		return nil
	}
	err := errors.Join(s.save(), s.log.Close())
	if err != nil {
		return fmt.Errorf("processing: statistics: %w", err)
	}
	return nil
}

// CopyTo copies the counts into folder dir, which must not exist. OpenStatistics can open the copy.
func (s *Statistics) CopyTo(ctx context.Context, dir string) error {
	return durablefs.MakeFolder(ctx, dir, func(dir string) error {
		s.mu.Lock()
		b, err := json.Marshal(stored{statisticsVersion, 0, s.reportLocked()})
		s.mu.Unlock()
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, statisticsName), b, 0o644)
	})
}

// statisticsVersion is the version of stats.json and its log.
const statisticsVersion = 1

// stored is the content of stats.json.
type stored struct {
	Version int `json:"version"`
	Log     int `json:"log"` // number of the log that continues from here
	Report
}

func (s *Statistics) logName(number int) string {
	return filepath.Join(s.dir, fmt.Sprintf("stats-%d.log", number))
}

// save writes stats.json and begins a new log.
func (s *Statistics) save() error {
	next := stored{statisticsVersion, s.number + 1, s.reportLocked()}
	b, err := json.MarshalIndent(&next, "", "\t")
	if err != nil {
		return err
	}
	fresh, err := os.OpenFile(s.logName(next.Log), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if err := durablefs.WriteFile(filepath.Join(s.dir, statisticsName), 0o644, func(w io.Writer) error { _, err := w.Write(append(b, '\n')); return err }); err != nil {
		return errors.Join(err, fresh.Close(), os.Remove(fresh.Name()))
	}
	old := s.log
	s.log, s.number, s.logged = fresh, next.Log, 0
	if old == nil {
		return nil
	}
	return errors.Join(old.Close(), os.Remove(old.Name()))
}

// load reads a folder and continues with a new log.
func (s *Statistics) load() error {
	if err := os.MkdirAll(s.dir, 0o777); err != nil {
		return err
	}
	b, err := os.ReadFile(filepath.Join(s.dir, statisticsName))
	switch {
	case err == nil:
		var is struct{ Version int }
		if err := json.Unmarshal(b, &is); err == nil && is.Version != statisticsVersion {
			return fmt.Errorf("%s: it has version %d, this program knows %d: %w", statisticsName, is.Version, statisticsVersion, frontier.ErrVersion)
		}
		var t stored
		if err := json.Unmarshal(b, &t); err != nil {
			return fmt.Errorf("%s: %w", statisticsName, err)
		}
		s.number, s.report = t.Log, t.Report
		s.hosts.take(t.Hosts)
		s.report.Hosts = nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := s.replay(); err != nil {
		return err
	}
	logs, err := filepath.Glob(filepath.Join(s.dir, "stats-*.log")) // of a process that died while it saved
	if err != nil {
		return err
	}
	if err := s.save(); err != nil {
		return err
	}
	s.written = s.opts.Now()
	logs = slices.DeleteFunc(logs, func(name string) bool { return name == s.logName(s.number) })
	for _, name := range logs {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// replay counts the log's lines. A torn line at its end was never acknowledged.
func (s *Statistics) replay() error {
	f, err := os.Open(s.logName(s.number))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	for lines := bufio.NewReader(f); ; {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		var a answer
		if err := json.Unmarshal(bytes.TrimSpace(line), &a); err != nil {
			continue // torn by a full disk, and followed by others
		}
		s.count(&a)
	}
}

// mediaType returns the declared media type of an answer, in lower case.
func mediaType(p *crawler.Page) string {
	t := media.Of(p.Header).Essence
	switch {
	case p.Header.Get("Content-Type") == "":
		return "none"
	case t == "" || len(t) > 100:
		return "malformed"
	}
	return t
}
