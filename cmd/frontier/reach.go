// This file finds a folder's crawl: a running one over its socket, one at rest by opening the folder, to
// change it or only to read.

package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/urlnorm"
	"github.com/seed-7440039f/frontier/fleet"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/urlfrontier"
)

// socketPath returns the socket of a folder's crawl. It lies in the folder, unless its path would be too
// long for a socket.
func socketPath(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if path := filepath.Join(abs, "console.sock"); len(path) < 100 {
		return path, nil
	}
	run := os.Getenv("XDG_RUNTIME_DIR")
	if run == "" {
		return "", fmt.Errorf("the path of %s is too long for a socket in it, and XDG_RUNTIME_DIR is not set", abs)
	}
	hash := sha256.Sum256([]byte(abs))
	return filepath.Join(run, fmt.Sprintf("frontier-%x.sock", hash[:10])), nil
}

// listen makes a folder's socket, which only its owner may open. This process holds the folder, so an
// existing socket was left by a killed process.
func listen(dir string) (net.Listener, error) {
	path, err := socketPath(dir)
	if err != nil {
		return nil, err
	}
	parent := filepath.Dir(path)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	// Before the mode is set, others could connect. So the socket is made in a folder that only the owner
	// may enter, and then moved.
	private, err := os.MkdirTemp(parent, ".s")
	if err != nil {
		return nil, err
	}
	defer os.Remove(private)
	first := filepath.Join(private, "s")
	l, err := net.Listen("unix", first)
	if err != nil {
		return nil, err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	err = os.Chmod(first, 0o600)
	if err == nil {
		err = os.Rename(first, path)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close(), os.Remove(first))
	}
	return &socket{l, path}, nil
}

// socket is a listener whose Close removes its file.
type socket struct {
	net.Listener
	path string
}

func (s *socket) Close() error {
	err := s.Listener.Close()
	if gone := os.Remove(s.path); gone != nil && !errors.Is(gone, fs.ErrNotExist) && err == nil {
		err = gone
	}
	return err
}

// reached is a crawl that accepts requests.
type reached struct {
	*console.Client
	running bool
	close   func() error
}

// errNoDir is returned when a command names no folder.
const errNoDir = usageError("which crawl? Name its folder with -dir, or in FRONTIER_DIR")

// manifest is a file in every crawl's folder.
const manifest = "MANIFEST"

// reach finds a folder's crawl, to change it. If no process uses the folder, it opens it.
func reach(ctx context.Context, dir string) (*reached, error) { return reachOr(ctx, dir, openAtRest) }

// lookAt finds a folder's crawl, to read it. If no process uses the folder, it opens a read-only view.
func lookAt(ctx context.Context, dir string) (*reached, error) {
	return reachOr(ctx, dir, func(ctx context.Context, dir string) (*reached, error) {
		return openWith(ctx, dir, spill.OpenView, frontier.Options{}, unprepared)
	})
}

// reachOr finds a folder's crawl. If no process uses the folder, it calls atRest.
func reachOr(ctx context.Context, dir string, atRest func(context.Context, string) (*reached, error)) (*reached, error) {
	if dir == "" {
		return nil, errNoDir
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, hasCrawl(dir)
	}
	path, asked := socketPath(dir)
	if asked == nil {
		c := console.Dial(path)
		var f *fleet.State
		if _, asked = c.Due(ctx, 0); asked != nil {
			f, _ = askFleet(ctx, dir, "GET", "")
		}
		if asked == nil || f != nil && len(f.Partitions) > 1 { // some partitions may answer
			return &reached{c, true, func() error { c.Close(); return nil }}, nil
		}
		if c.Close(); f != nil {
			return nil, fmt.Errorf("no machine of the fleet answers for the frontier (%w)\n%s", asked, strings.Join(f.Lines(), "\n"))
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err := hasCrawl(dir); err != nil {
		return nil, err
	}
	silence := "it may be starting, or another user's"
	if runtime.GOOS == "windows" {
		silence = "on Windows commands cannot reach a running crawl: its page can, and they can once it is stopped"
	}
	r, err := atRest(ctx, dir)
	if errors.Is(err, frontier.ErrInUse) {
		return nil, fmt.Errorf("another process%s uses %s and does not answer (%w): %s", holder(dir), dir, asked, silence)
	}
	return r, advised(dir, err)
}

// servedFolder reports whether a server has used a folder.
func servedFolder(dir string) bool { return exists(filepath.Join(dir, contactsFile)) }

// hasCrawl returns an error if a folder has no crawl: opening it would begin one.
func hasCrawl(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return usageError(fmt.Sprintf("there is no folder %s, and so no crawl in it; frontier crawl -dir %s URL begins one", dir, dir))
	case err != nil:
		return fmt.Errorf("there is no crawl in %s: %w", dir, err)
	case !info.IsDir():
		return usageError(fmt.Sprintf("%s is a file; want the folder of a crawl", dir))
	}
	if err := ofNoFleet(dir); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, manifest)); errors.Is(err, fs.ErrNotExist) {
		return usageError(fmt.Sprintf("there is no crawl in %s; frontier crawl -dir %s URL begins one", dir, dir))
	} else if err != nil {
		return fmt.Errorf("there is no crawl in %s: %w", dir, err)
	}
	return nil
}

// openStore opens a store for writing, unless it belongs to another user.
func openStore(dir string, o spill.Options) (*spill.Store, error) {
	if err := cmp.Or(checkOwner(dir), ofNoFleet(dir)); err != nil {
		return nil, err
	}
	return spill.Open(dir, o)
}

// ofNoFleet returns an error if a folder belongs to a machine of a fleet.
func ofNoFleet(dir string) error {
	if engineOf(dir) == "" {
		return nil
	}
	return usageError(fmt.Sprintf("%s is the folder of a machine of a fleet, which does not run, or has not joined yet: its log says what it waits for; frontier serve -fleet starts it", dir))
}

// storeMemory returns the store's share of a memory: its least, and half of what a server does not need.
// Zero means the default.
func storeMemory(memory byteSize) int64 {
	if memory == 0 {
		return 0
	}
	return min(64<<20+max(0, int64(memory)-leastServed)/2, 128<<20)
}

// advised adds advice to an error of a crawl's store.
func advised(dir string, err error) error {
	var corrupt *frontier.CorruptError
	switch {
	case errors.Is(err, frontier.ErrInUse):
		return fmt.Errorf("another process%s uses %s.\nLook at it with frontier status -dir %s, end it with frontier stop -dir %s, or name another folder with -dir", holder(dir), dir, dir, dir)
	case errors.As(err, &corrupt):
		return fmt.Errorf("%w\nThe crawl is damaged, and left as it is. What can be read goes into a new folder with: frontier repair -dir %s NEW-FOLDER", err, dir)
	case errors.Is(err, frontier.ErrReopen):
		return fmt.Errorf("%w\nNothing is lost: start it again when the disk works", err)
	}
	return err
}

// holder names the process that holds a folder, if its lock does.
func holder(dir string) string {
	b, err := os.ReadFile(filepath.Join(dir, "LOCK"))
	if pid, bad := strconv.Atoi(strings.TrimSpace(string(b))); err == nil && bad == nil && pid > 0 {
		return fmt.Sprintf(" (%d)", pid)
	}
	return ""
}

// openAtRest opens the folder of a crawl at rest.
func openAtRest(ctx context.Context, dir string) (*reached, error) {
	return openWith(ctx, dir, openStore, frontier.Options{}, unprepared)
}

func unprepared(*frontier.Frontier, *console.Options) error { return nil }

// openWith opens the folder of a crawl at rest. prepare completes the Console's options. Hints wait until
// the crawl runs.
func openWith(ctx context.Context, dir string, open func(string, spill.Options) (*spill.Store, error), o frontier.Options, prepare func(*frontier.Frontier, *console.Options) error) (_ *reached, err error) {
	store, err := open(dir, spill.Options{})
	if err != nil {
		return nil, err
	}
	if servedFolder(dir) {
		o = urlfrontier.Frontier(o)
	}
	o.Spill, o.DeferHints = store, true
	f, err := frontier.Open(ctx, o)
	if err != nil {
		return nil, join(err, store.Close())
	}
	norm := urlnorm.New().Accept("gopher", "70") // whatever the crawl's protocols are
	co := console.Options{Title: filepath.Base(dir), Normalize: norm.Typed, Parked: parkedIn(f), Lot: crawler.Lot, AtRest: true}
	if !servedFolder(dir) {
		co.Newest = newestIn(dir)
	}
	var c *console.Console
	if err = prepare(f, &co); err == nil {
		c, err = console.New(f, co)
	}
	if err != nil {
		return nil, join(join(err, f.Close()), store.Close())
	}
	client := console.Direct(c)
	return &reached{client, false, func() error {
		client.Close()
		return errors.Join(c.Close(), f.Close(), store.Close())
	}}, nil
}

// forCommands returns a listener for the commands that name a folder; nil: there is none.
func forCommands(dir string, warn func(what string, err error)) net.Listener {
	if dir == "" || runtime.GOOS == "windows" {
		return nil
	}
	l, err := listen(dir)
	if err != nil {
		warn("commands cannot reach this process", err)
		return nil
	}
	return l
}

// serveConsole serves a Console until the returned function is called: on the folder's socket, and for
// browsers on page, if it is not nil.
func serveConsole(c *console.Console, local, page, metrics net.Listener, say func(url string)) (stop func()) {
	var servers []*http.Server
	serve := func(l net.Listener, h http.Handler) {
		s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
		servers = append(servers, s)
		go func() { _ = s.Serve(l) }()
	}
	if local != nil {
		serve(local, c.Local())
	}
	if page != nil {
		serve(page, slow(c.Page()))
		say("http://" + shown(page.Addr().String()) + "/")
	}
	if metrics != nil {
		serve(metrics, slow(c.Metrics()))
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), lastAnswers)
		defer cancel()
		for _, s := range servers {
			_ = s.Shutdown(ctx)
			_ = s.Close()
		}
	}
}

// lastAnswers is how long responses may take once a Console ends: frontier stop waits for one.
const lastAnswers = 200 * time.Millisecond

// slow ends responses that the client does not read.
func slow(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/api/export") && !strings.HasPrefix(r.URL.Path, "/api/import") && !strings.HasPrefix(r.URL.Path, "/api/changed") {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(30 * time.Second))
		}
		h.ServeHTTP(w, r)
	})
}

// shown returns an address that a browser can open.
func shown(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}
