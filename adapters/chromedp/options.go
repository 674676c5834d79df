// This file holds the options of a Renderer.

package frontierchromedp

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os/exec"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/internal/faults"
	"github.com/seed-7440039f/frontier/internal/unit"
)

// Options configure a Renderer. The zero value works where Chromium is installed.
type Options struct {
	// Fetch configures the Fetcher that sends all requests.
	Fetch fetch.Options
	// Browser is the path of Chromium or Chrome. Empty means the first of chromium,
	// chromium-browser, google-chrome and chrome in PATH.
	Browser string
	// NoSandbox starts the browser without its sandbox. The sandbox protects the machine from
	// pages; root, and many containers, cannot have it. Use it only where the container is one.
	NoSandbox bool
	// Tabs is how many pages are rendered at once at most; more wait, under their leases. Zero means 4.
	Tabs int
	// Memory is the maximum number of bytes for the scripts of a tab. A page that wants more
	// crashes its tab. Zero means 512 MiB.
	Memory int64

	// Quiet is how long a loaded page must have requested nothing to be done. Zero means 500 ms.
	Quiet time.Duration
	// Timeout is how long the scripts of a page may take; then the page is read as it is. The
	// lease ends both. Zero means 20 s.
	Timeout time.Duration
	// MaxRequests is how many requests a page may make, besides its own. Zero means 32.
	MaxRequests int
	// Pause is the least time between two requests of a page to its host. Zero means none.
	Pause time.Duration
	// ScriptTTL is how long a script is used again, unless its Cache-Control forbids to store it.
	// ScriptMemory is the number of bytes for scripts. Zero means 1 hour, and 64 MiB.
	ScriptTTL    time.Duration
	ScriptMemory int64
	// Others sends requests to other hosts than the page's. Nil means that they are not sent. Base
	// has the limits of a fetch.Fetcher, and waits for no turn: give it to something that does.
	Others http.RoundTripper
	// HostKey must be the same as in the frontier's Options. Nil means frontier.HostName.
	HostKey func(url string) (string, error)
	// Logger receives warnings of pages that cannot be rendered, and of a browser that has to be
	// started again. Nil means slog.Default.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	set := func(n *int64, x int64) {
		if *n == 0 {
			*n = x
		}
	}
	set((*int64)(&o.Quiet), int64(500*time.Millisecond))
	set((*int64)(&o.Timeout), int64(20*time.Second))
	set((*int64)(&o.ScriptTTL), int64(time.Hour))
	set(&o.ScriptMemory, 64<<20)
	set(&o.Memory, 512<<20)
	o.Tabs = cmp.Or(o.Tabs, 4)
	o.MaxRequests = cmp.Or(o.MaxRequests, 32)
	if o.HostKey == nil {
		o.HostKey = frontier.HostName
	}
	o.Logger = cmp.Or(o.Logger, slog.Default())
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil && o.Browser == "" {
			o.Browser = path
		}
	}
	return o
}

func (o Options) validate() error { // runs after withDefaults; reports every fault at once
	wrong := faults.List(unit.CheckAll("", o))
	wrong.If(o.Tabs < 0, "Tabs is %d; want > 0", o.Tabs)
	wrong.If(o.Memory < 0, "Memory is %d; want > 0", o.Memory)
	wrong.If(o.MaxRequests < 0, "MaxRequests is %d; want > 0", o.MaxRequests)
	wrong.If(o.ScriptMemory < 0, "ScriptMemory is %d; want > 0", o.ScriptMemory)
	if o.Browser == "" {
		wrong.Add(errors.New("no Chromium found; install one, or name it in Browser"))
	} else if _, err := exec.LookPath(o.Browser); err != nil {
		wrong.Add(fmt.Errorf("option Browser: %w", err))
	}
	return wrong.Of("frontierchromedp: options")
}
