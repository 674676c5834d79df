// This file is the public side of an index of pages on disk. adding.go finds and stores pages;
// mirrors.go compares hosts.

package neardup

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"github.com/seed-7440039f/frontier"
)

// Kind is the relation of a page to earlier pages.
type Kind uint8

// The kinds of matches.
const (
	New      Kind = iota // like no other page
	SameURL              // this URL had the same content before
	SameByte             // another page has the same bytes
	SameText             // another page has the same words
	Near                 // another page has nearly the same words
)

// String returns the kind's name.
func (k Kind) String() string {
	return [...]string{"new", "same URL", "same bytes", "same text", "near"}[min(k, Near)]
}

// Duplicate reports whether another URL already has the content.
func (k Kind) Duplicate() bool { return k >= SameByte }

// Match is the result of Add.
type Match struct {
	Kind Kind
	// URL is the page that came first; empty if Kind is New.
	URL string
	// Resemblance is an estimate for Near, 0 for New, and otherwise 1.
	Resemblance float64
	// Known means that the index knew this URL; Changed that its bytes were different, and Change
	// how much of its content differs: see Page.Change.
	Known   bool
	Changed bool
	Change  float64
	// SameLinks means that both pages have the same links: Page.Links of both are known and equal.
	SameLinks bool
}

// Index remembers pages. It is safe for concurrent use.
type Index struct {
	opts   Options
	rows   int
	hasher *Hasher
	db     *badger.DB

	life   sync.RWMutex // held for reading by every call
	closed bool         // guarded by life

	mirrors mirrorCounts
}

// Open opens the Index in a folder, and creates it if there is none; if dir is empty, it creates
// one in memory, which grows without limit. A folder can be open only once: a second Open returns
// frontier.ErrInUse, wrapped. A folder of another version is reported as frontier.ErrVersion.
func Open(dir string, o Options) (*Index, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	db, err := badger.Open(o.engine(dir))
	if err != nil {
		if strings.Contains(err.Error(), "Another process is using this Badger database") {
			err = fmt.Errorf("%w: %w", frontier.ErrInUse, err)
		}
		return nil, fmt.Errorf("neardup: open: %w", err)
	}
	x := &Index{opts: o, rows: bandRows(o.Threshold), db: db}
	if err := x.begin(); err != nil {
		return nil, errors.Join(fmt.Errorf("neardup: open: %w", err), db.Close())
	}
	return x, nil
}

// tableShare is the inverse share of the memory for a table, on each level: while merging tables
// badger makes up to ten at once, and holds each twice or, if its values are large, three times. By
// default tables are twice as large on each level.
const tableShare = 32

// engine returns the options for badger.
func (o *Options) engine(dir string) badger.Options {
	b := badger.DefaultOptions(dir).
		WithInMemory(dir == "").
		WithSyncWrites(o.Sync).
		WithMemTableSize(o.Memory / 16).
		WithNumMemtables(2).
		WithNumCompactors(2).
		WithCompression(options.None).
		WithBlockCacheSize(0).
		WithBlockSize(16 << 10).
		WithIndexCacheSize(o.Memory / 4).
		WithValueThreshold(min(o.Memory/128, 1<<20)).
		WithValueLogFileSize(1 << 20).
		WithNumVersionsToKeep(1).
		WithMetricsEnabled(false).
		WithLogger(badgerLog{o.Logger})
	b.BaseTableSize, b.TableSizeMultiplier = o.Memory/tableShare, 1
	return b
}

// begin reads or creates the row that defines the meaning of the folder's sketches.
func (x *Index) begin() error {
	return x.db.Update(func(txn *badger.Txn) error {
		want := meta{version: formatVersion, rows: x.rows, shingle: x.opts.Shingle, keepNumbers: x.opts.KeepNumbers}
		item, err := txn.Get(metaKey)
		if errors.Is(err, badger.ErrKeyNotFound) {
			want.key = NewKey()
			x.hasher = NewHasher(want.key, x.opts)
			return txn.Set(metaKey, want.bytes())
		}
		if err != nil {
			return err
		}
		return item.Value(func(v []byte) error {
			got, err := parseMeta(v)
			if err != nil {
				return err
			}
			if got.version != formatVersion {
				return fmt.Errorf("%w: it has version %d, this program knows %d", frontier.ErrVersion, got.version, formatVersion)
			}
			want.key = got.key
			if got != want {
				return fmt.Errorf("%w: %v; asked for are %v", ErrOptions, got, want)
			}
			x.hasher = NewHasher(got.key, x.opts)
			return nil
		})
	})
}

// Hasher returns the Hasher that makes this index's Pages. It is the same each time the folder is
// opened.
func (x *Index) Hasher() *Hasher { return x.hasher }

// Close ends the use of an Index. Pages added so far are in its folder even without Close.
func (x *Index) Close() error {
	x.life.Lock()
	defer x.life.Unlock()
	if x.closed {
		return nil
	}
	x.closed = true
	return x.db.Close()
}

// Add stores the content of a URL, made by the Index's Hasher, and returns its relation to the
// pages of other URLs. It replaces the URL's previous content. Once Add has returned, the content
// survives kill -9. Adding a page again changes nothing, so a crawler may repeat Add after a crash.
func (x *Index) Add(url string, p Page) (Match, error) {
	x.life.RLock()
	defer x.life.RUnlock()
	if x.closed {
		return Match{}, ErrClosed
	}
	a := adding{x: x, url: url, page: p, id: x.id(url)}
	a.host, a.path = hostAndPath(url)
	for {
		err := a.try()
		if errors.Is(err, badger.ErrConflict) {
			continue // another Add was faster with the same content: look again
		}
		if err != nil {
			return Match{}, fmt.Errorf("neardup: add: %w", err)
		}
		break
	}
	for _, host := range a.sameAt {
		x.noticeMirror(a.host, host)
	}
	return a.match, nil
}

// badgerLog hands badger's log on.
type badgerLog struct{ *slog.Logger }

func (l badgerLog) Errorf(f string, a ...any)   { l.Error(strings.TrimSpace(fmt.Sprintf(f, a...))) }
func (l badgerLog) Warningf(f string, a ...any) { l.Warn(strings.TrimSpace(fmt.Sprintf(f, a...))) }
func (l badgerLog) Infof(f string, a ...any)    { l.Debug(strings.TrimSpace(fmt.Sprintf(f, a...))) }
func (l badgerLog) Debugf(f string, a ...any)   {}
