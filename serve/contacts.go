// This file records the leases that clients hold in a file, so that a restart does not break politeness.
//
// Clients outlive the server. After a restart they may still fetch what an earlier Service handed out,
// although the frontier has forgotten those leases. So each hand-out is written before the client gets
// it, and each end when it arrives. A new Service takes a contact lease for each host on file before the
// host's URLs, and keeps it until the client reports the end or the lease's deadline passes.

package serve

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/durablefs"
	"github.com/seed-7440039f/frontier/internal/hostkey"
)

// urlName names a URL of a crawl.
type urlName struct {
	crawl uint32
	url   string
}

// contact is a lease that was handed out.
type contact struct {
	client       string
	host         string
	since, until time.Time
	of           urlName // empty: the lease is for a contact only
	with         string  // the ID of the first lease of its bundle: they share a contact
}

// contacts is the table of outstanding leases. It also works without a file.
type contacts struct {
	mu     sync.Mutex
	path   string             // empty: there is no file
	file   *os.File           // guarded by mu; nil: no file
	out    map[string]contact // guarded by mu; by lease ID; may include expired ones
	swept  int                // guarded by mu; len(out) after the last sweep
	size   int64              // guarded by mu; bytes of the file
	kept   int64              // guarded by mu; its size after the last rewrite
	wrote  time.Time          // guarded by mu; when that was
	log    *slog.Logger
	permit func(context.Context, time.Time) error // nil: all is permitted
	ahead  time.Duration                          // of this clock before the one of the file
	now    func() time.Time                       // the frontier's clock
	broken error                                  // guarded by mu; why the file cannot be used any more

	sync    bool       // a hand-out waits for fsync
	syncing sync.Mutex // one sync at a time; taken before mu
	writes  int64      // guarded by mu
	synced  int64      // guarded by mu; the last write that fsync covered

	left map[string]*inherited // guarded by mu; contacts of an earlier Service, by lease ID
	urls map[urlName]string    // guarded by mu; the keys of left by URL
}

// rewriteAt is the size in bytes from which the file is rewritten if most of its lines are obsolete.
const rewriteAt = 1 << 20

// begin reads the file. It returns the contacts that had not ended, and any damage to the file, such as
// after a power loss.
func (x *contacts) begin(path string, now time.Time) (left []*inherited, damage, err error) {
	x.path = path
	old, _ := filepath.Glob(filepath.Join(filepath.Dir(path), tempName)) // left by processes that died
	for _, name := range old {
		_ = os.Remove(name)
	}
	x.out, x.left, x.urls = map[string]contact{}, map[string]*inherited{}, map[urlName]string{}
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("serve: contacts: %w", err)
	}
	if i := bytes.LastIndexByte(b, '\n'); i+1 < len(b) { // the process died while it wrote
		b = b[:i+1]
	}
	n := 0
	for line := range bytes.Lines(b) {
		n++
		if err := x.read(string(bytes.TrimSuffix(line, []byte{'\n'}))); err != nil && damage == nil {
			damage = fmt.Errorf("line %d: %w", n, err)
		}
	}
	bundles := map[string]*inherited{}
	for id, c := range x.out {
		if !c.until.After(now) {
			delete(x.out, id)
			continue
		}
		in := bundles[c.with]
		if in == nil {
			in = &inherited{host: c.host}
			bundles[c.with] = in
		}
		if c.until.After(in.until) {
			in.until = c.until
		}
		in.open++
		if x.left[id] = in; c.of.url != "" {
			x.urls[c.of] = id
		}
	}
	return slices.Collect(maps.Values(bundles)), damage, x.rewrite(now)
}

// inherits returns the contact of an earlier Service's lease, or nil if there is none or it has ended.
func (x *contacts) inherits(id string) *inherited {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.left[id]
}

// extended moves the deadline of an inherited contact.
func (x *contacts) extended(id string, until time.Time) *inherited {
	x.mu.Lock()
	in := x.left[id]
	var n int64
	var err error
	if c, ok := x.out[id]; ok && in != nil {
		c.until = until
		x.out[id] = c
		n, err = x.writeLocked(c.append(nil, id, x.now()))
	}
	x.mu.Unlock()
	_ = x.settled(n, err) // a failure matters only to the start after the next
	return in
}

// idOf returns the ID of the lease under which an earlier Service handed a URL out, or "".
func (x *contacts) idOf(crawl uint32, url string) string {
	if x.path == "" {
		return ""
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.urls) == 0 {
		return ""
	}
	return x.urls[urlName{crawl, url}]
}

// read parses a line: "+ID UNTIL SINCE CRAWL BUNDLE CLIENT HOST URL" or "-ID". Times are in milliseconds;
// CLIENT, HOST and URL are quoted.
func (x *contacts) read(line string) error {
	kind, rest := line[:min(1, len(line))], line[min(1, len(line)):]
	if kind == "-" {
		delete(x.out, rest)
		return nil
	}
	f := strings.SplitN(rest, " ", 6)
	if kind != "+" || len(f) != 6 {
		return fmt.Errorf("%.60q is no contact", line)
	}
	until, bad := strconv.ParseInt(f[1], 10, 64)
	since, err := strconv.ParseInt(f[2], 10, 64)
	crawl, wrong := strconv.ParseUint(f[3], 10, 32)
	if err = errors.Join(bad, err, wrong); err != nil {
		return err
	}
	c := contact{until: shownBy(x.now(), time.UnixMilli(until).Add(x.ahead)), since: time.UnixMilli(since).Add(x.ahead), of: urlName{crawl: uint32(crawl)}, with: f[4]}
	rest = f[5]
	for _, to := range []*string{&c.client, &c.host, &c.of.url} {
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return fmt.Errorf("%.60q: %w", rest, err)
		}
		*to, _ = strconv.Unquote(quoted)
		rest = strings.TrimPrefix(rest[len(quoted):], " ")
	}
	if err = hostkey.Check(c.host); err != nil {
		return fmt.Errorf("host: %w", err)
	}
	x.out[f[0]] = c
	return nil
}

// shownBy returns t as the clock shows it that shows now, and by which time passes though it is set.
func shownBy(now, t time.Time) time.Time { return now.Add(t.Sub(now)) }

func (c *contact) append(b []byte, id string, now time.Time) []byte {
	b = append(append(b, '+'), id...)
	b = strconv.AppendInt(append(b, ' '), shownBy(now, c.until).UnixMilli()+1, 10) // rounded up: never before the deadline
	b = strconv.AppendInt(append(b, ' '), c.since.UnixMilli(), 10)
	b = strconv.AppendUint(append(b, ' '), uint64(c.of.crawl), 10)
	b = append(append(b, ' '), c.with...)
	for _, text := range []string{c.client, c.host, c.of.url} {
		b = strconv.AppendQuote(append(b, ' '), text)
	}
	return append(b, '\n')
}

// tempName is the pattern of temporary files.
const tempName = ".contacts-*"

// rewrite writes a new file with the outstanding leases. Only begin calls it without the lock.
func (x *contacts) rewrite(now time.Time) error {
	size, err := x.replace(now)
	x.wrote = now
	file, failed := os.OpenFile(x.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if failed != nil {
		x.broken = fmt.Errorf("serve: contacts: %w", failed)
		file = nil
	}
	if x.file, x.size, x.kept = file, size, size; err == nil {
		err = failed
	}
	if err != nil {
		return fmt.Errorf("serve: contacts: %w", err)
	}
	return nil
}

// replace closes the current file and renames a new one over it: Windows cannot rename over an open file.
// It returns the size of the file in place.
func (x *contacts) replace(now time.Time) (size int64, err error) {
	temp, err := os.CreateTemp(filepath.Dir(x.path), tempName)
	if err != nil {
		return x.size, errors.Join(err, x.closeFile())
	}
	w := bufio.NewWriter(temp)
	var line []byte
	for id, c := range x.out {
		if !c.until.After(now) {
			delete(x.out, id)
			continue
		}
		line = c.append(line[:0], id, now)
		size += int64(len(line))
		w.Write(line)
	}
	err = w.Flush()
	if x.sync {
		err = errors.Join(err, temp.Sync())
	}
	err = errors.Join(err, temp.Close(), x.closeFile())
	if err == nil {
		err = os.Rename(temp.Name(), x.path)
	}
	if err != nil {
		return x.size, errors.Join(err, os.Remove(temp.Name()))
	}
	if x.sync {
		x.broken = durablefs.SyncFolder(filepath.Dir(x.path)) // otherwise the name may still lead to the old file on the medium
	}
	x.synced = x.writes
	return size, x.broken
}

func (x *contacts) closeFile() error {
	if x.file == nil {
		return nil
	}
	err := x.file.Close()
	x.file = nil
	return err
}

// permitted asks whether leases may be handed out or extended.
func (x *contacts) permitted(ctx context.Context, leases ...frontier.Lease) error {
	if x.permit == nil || len(leases) == 0 {
		return nil
	}
	last := slices.MaxFunc(leases, func(a, b frontier.Lease) int { return a.Deadline.Compare(b.Deadline) })
	if err := x.permit(ctx, last.Deadline); err != nil {
		return fmt.Errorf("%w: %w", ErrWithheld, err)
	}
	return nil
}

// began records leases that are handed out to a client.
func (x *contacts) began(ctx context.Context, client string, leases ...frontier.Lease) error {
	if err := x.permitted(ctx, leases...); err != nil || len(leases) == 0 {
		return err
	}
	x.mu.Lock()
	x.sweepLocked(x.now())
	var b []byte
	with := ""
	for i := range leases {
		l := &leases[i]
		id := l.ID()
		if i == 0 || !l.SharesContact(leases[i-1]) {
			with = id
		}
		b = x.addLocked(b, id, l, contact{client: client, with: with})
	}
	n, err := x.writeLocked(b)
	x.mu.Unlock()
	return x.settled(n, err)
}

// sweepLocked drops expired leases now and then: no call reports an expiry.
func (x *contacts) sweepLocked(now time.Time) {
	if len(x.out) < max(1024, 2*x.swept) {
		return
	}
	maps.DeleteFunc(x.out, func(_ string, c contact) bool { return !c.until.After(now) })
	x.swept = len(x.out)
}

// addLocked records an outstanding lease with the client of c, and appends its line to b.
func (x *contacts) addLocked(b []byte, id string, l *frontier.Lease, c contact) []byte {
	c.host, c.since, c.until, c.of = l.Host, l.LeasedAt, l.Deadline, urlName{l.Entry.Crawl, l.Entry.URL}
	if x.out == nil {
		x.out = map[string]contact{}
	}
	if x.out[id] = c; x.path == "" {
		return b
	}
	return c.append(b, id, x.now())
}

// changed records that a lease was extended, or that l replaced the lease with ID old. It does nothing if
// the old one has ended meanwhile.
func (x *contacts) changed(ctx context.Context, old string, l frontier.Lease) error {
	if err := x.permitted(ctx, l); err != nil {
		return err
	}
	x.mu.Lock()
	c, ok := x.out[old]
	if !ok {
		x.mu.Unlock()
		return nil
	}
	id := l.ID()
	b := x.addLocked(nil, id, &l, c)
	if id != old {
		delete(x.out, old)
		b = appendEnd(b, old)
	}
	n, err := x.writeLocked(b)
	x.mu.Unlock()
	return x.settled(n, err)
}

func appendEnd(b []byte, id string) []byte { return append(append(append(b, '-'), id...), '\n') }

// writeLocked appends lines to the file, and rewrites it when most of it is obsolete. It returns the
// number of the write.
func (x *contacts) writeLocked(b []byte) (int64, error) {
	if x.broken != nil || x.file == nil || len(b) == 0 {
		return x.writes, x.broken
	}
	if _, err := x.file.Write(b); err != nil {
		if cut := x.file.Truncate(x.size); cut != nil { // otherwise half a line may stay
			x.broken = fmt.Errorf("serve: contacts: %w", errors.Join(err, cut))
		}
		return x.writes, fmt.Errorf("serve: contacts: %w", err)
	}
	x.writes++
	if x.size += int64(len(b)); (x.size < rewriteAt || x.size < 2*x.kept) && !x.setLocked(x.now()) {
		return x.writes, nil
	}
	if err := x.rewrite(x.now()); err != nil { // the new file holds those lines too
		x.log.Error("serve: the file of contacts could not be written anew", "error", err)
	}
	return x.writes, nil
}

// settled waits until a write is on the medium, if Sync asks for that. One fsync serves all waiters.
func (x *contacts) settled(write int64, err error) error {
	if err != nil || !x.sync {
		return err
	}
	x.syncing.Lock()
	defer x.syncing.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	for x.broken == nil && x.synced < write && x.file != nil {
		file, last := x.file, x.writes
		x.mu.Unlock()
		err = file.Sync()
		x.mu.Lock()
		switch {
		case err == nil:
			x.synced = max(x.synced, last)
		case x.file == file: // otherwise another call has closed it and opened a new one
			x.broken = fmt.Errorf("serve: contacts: %w", err)
		}
	}
	return x.broken
}

// ended records that leases have ended.
func (x *contacts) ended(ids ...string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	var b []byte
	for _, id := range ids {
		c, ok := x.out[id]
		if ok {
			delete(x.out, id)
			b = appendEnd(b, id)
		}
		if delete(x.left, id); x.urls[c.of] == id {
			delete(x.urls, c.of)
		}
	}
	_, _ = x.writeLocked(b) // on failure the next start leaves the host alone for longer
}

// setLocked reports whether the clock was set since the file was rewritten. Its dates are those of before then.
func (x *contacts) setLocked(now time.Time) bool {
	return (now.Round(0).Sub(x.wrote.Round(0)) - now.Sub(x.wrote)).Abs() > 10*time.Millisecond
}

// close closes the file.
func (x *contacts) close() (err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.file != nil && x.setLocked(x.now()) {
		err = x.rewrite(x.now())
	}
	return errors.Join(err, x.closeFile())
}
