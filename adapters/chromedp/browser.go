// This file starts the browser, and starts another one when it is gone.

package frontierchromedp

import (
	"context"
	"fmt"
	"time"

	"github.com/chromedp/chromedp"
)

// browser is a running one.
type browser struct {
	ctx  context.Context // of chromedp; ends with the browser
	stop context.CancelFunc
}

// closeMost is how long a browser, or a tab, may take to close before it is killed or left.
const closeMost = 10 * time.Second

// running returns the browser, or starts one.
func (r *Renderer) running() (*browser, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return nil, errClosed
	case r.browser != nil && r.browser.ctx.Err() == nil:
		return r.browser, nil
	case r.browser != nil:
		r.opts.Logger.Warn("the browser is gone; another one is started", "error", context.Cause(r.browser.ctx))
		r.browser.stop()
		r.browser = nil
	}
	b, err := r.opts.start()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", r.opts.Browser, err)
	}
	r.browser = b
	return b, nil
}

// start starts a browser that can reach nothing: requests are answered by the Renderer, and those
// that it does not see, such as web sockets', find no host.
func (o *Options) start() (*browser, error) {
	flags := []chromedp.ExecAllocatorOption{
		chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.Headless, chromedp.ExecPath(o.Browser),
		chromedp.Flag("js-flags", fmt.Sprintf("--max-old-space-size=%d", max(o.Memory>>20, 1))),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND"), chromedp.Flag("no-proxy-server", true),
		chromedp.Flag("force-webrtc-ip-handling-policy", "disable_non_proxied_udp"),
		chromedp.Flag("disable-features", "HttpsUpgrades,Translate,MediaRouter,OptimizationHints"), chromedp.Flag("blink-settings", "imagesEnabled=false"),
	}
	for _, name := range []string{
		"disable-background-networking", "disable-background-timer-throttling", "disable-backgrounding-occluded-windows", "disable-breakpad",
		"disable-component-update", "disable-default-apps", "disable-dev-shm-usage", "disable-domain-reliability", "disable-extensions", "disable-gpu",
		"disable-prompt-on-repost", "disable-quic", "disable-renderer-backgrounding", "disable-sync", "metrics-recording-only", "mute-audio",
	} {
		flags = append(flags, chromedp.Flag(name, true))
	}
	if o.NoSandbox {
		flags = append(flags, chromedp.NoSandbox)
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), flags...)
	quiet := func(format string, args ...any) { o.Logger.Debug("chromedp: " + fmt.Sprintf(format, args...)) }
	ctx, cancel := chromedp.NewContext(allocator, chromedp.WithErrorf(quiet), chromedp.WithLogf(quiet))
	b := &browser{ctx: ctx, stop: func() { cancel(); stop() }}
	if err := chromedp.Do(ctx); err != nil {
		b.stop()
		return nil, err
	}
	return b, nil
}

// close ends the browser, and waits until it has ended.
func (b *browser) close() error {
	ctx, cancel := context.WithTimeout(b.ctx, closeMost)
	defer cancel()
	err := chromedp.Cancel(ctx)
	b.stop()
	return err
}
