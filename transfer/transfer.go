// Package transfer moves the content of a frontier: [Export] writes it as lines of JSON, and [Import] reads these
// lines, or a list of URLs, into another frontier. docs/export.md has the format.
//
// Errors, options and calls that are named here without a package are those of package frontier.
package transfer

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/dump"
	"github.com/seed-7440039f/frontier/internal/gather"
	"github.com/seed-7440039f/frontier/internal/limit"
	"github.com/seed-7440039f/frontier/internal/patience"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/view"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/storage"
)

// source is a frontier from inside.
type source interface {
	Gather() gather.Frontier
	Intake() any                // an intake
	Abandoned() context.Context // ends when no call waits for the Spill any more
	Options() *frontier.Options
	HostSeen(name string) string
}

// intake takes an import into a frontier. One goroutine uses it. What follows Value and before Prepare need not be
// durable before Settle.
type intake interface {
	TakeKey(k [2]uint64) (foreign, fresh bool, err error)
	StartAt(until int64) error
	RuleOf(of row.Scope, stored *row.Rule) (scope.Scope, frontier.Rule, error)
	RuleOfCrawl(s row.CrawlSettings) (frontier.Rule, error)
	SettingsOf(g *row.Group) (frontier.GroupSettings, error)
	Used(of limit.Subject, s row.Usage) error

	Value(key string, v []byte) error
	Forgotten(r *row.Forgotten) error
	Group(name string, due int64) error
	Host(name string, h *row.Host) error

	Prepare(u *dump.URL) (storage.Mark, error)
	Drop() // what was prepared last
	Full() bool
	Admit(ctx context.Context) (n, fresh int64, err error)
	Marks(ctx context.Context, ms []storage.Mark) (int64, error)
	Settle() error // after the last line
	End()
}

// ExportOptions configure Export. The zero value is ready to use.
type ExportOptions struct {
	// TempDir is the folder of the temporary file that Export needs for more than Memory.
	// Empty means os.TempDir().
	TempDir string
	// Memory is the number of bytes that sorting may use. Zero means 64 MiB.
	Memory int
	// NoMarks leaves out the marks of URLs that are gone: a frontier that imports the
	// export takes them for new.
	NoMarks bool
}

// minExportMemory is the least that ExportOptions.Memory may be.
const minExportMemory = 64 << 10

// Export writes the whole content of a frontier to w, as the lines that docs/export.md describes:
// rules, groups, hosts with their clocks, URLs with all that is known about them, and marks of all URLs
// ever admitted. Leased URLs are written as waiting. Import is its inverse.
//
// With a Spill it shows one moment, while other calls go on; only clocks of hosts and
// groups are read a little later. Without one the lock is held while everything is copied
// to memory, about a second for ten million URLs.
//
// Two frontiers with the same content write the same bytes, except for the time in the first line. The
// order is that of domains, and within a host that in which URLs would be handed out after a reopening.
//
// Export returns ctx's error, ErrClosed if the frontier is closed meanwhile, w's error, or the Spill's.
// The output then lacks its last line {"end":...}, and Import refuses it. Calls may run concurrently.
func Export(ctx context.Context, f *frontier.Frontier, w io.Writer, o ExportOptions) error {
	o.Memory = cmp.Or(o.Memory, 64<<20)
	if o.Memory < minExportMemory {
		return fmt.Errorf("frontier: export: Memory is %d; want at least %d", o.Memory, minExportMemory)
	}
	from := view.Source(f).(source)
	out, end := patience.LendWriter(w, frontier.ErrClosed)
	defer end()
	_, err := patience.InTime(ctx, from.Abandoned(), func() (none struct{}, err error) {
		return none, gather.Export(ctx, from.Gather(), out, o.TempDir, o.Memory, o.NoMarks || from.Options().NoDedup)
	})
	return err
}
