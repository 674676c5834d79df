//go:build unix

// This file speaks to Chromium: the DevTools protocol over a pipe, messages that end in
// a zero byte. It knows nothing of our page.

package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience is how long anything may take that a browser does: it says that something is
// wrong, never how fast something is.
const patience = 3 * time.Minute

// chromium is a browser of its own, without a window.
type chromium struct {
	in   *os.File
	gone chan struct{} // closed when it says nothing more

	mu    sync.Mutex
	last  int
	calls map[int]chan message
	tabs  map[string]*tab // by session
}

// message is one of either direction.
type message struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// program is the Chromium that is there, or "".
func program() string {
	if path := os.Getenv("FRONTIER_CHROMIUM"); path != "" {
		return path
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// launch starts a browser that ends with the test. It can reach this machine alone.
func launch(t *testing.T) *chromium {
	t.Helper()
	path := program()
	if path == "" {
		t.Skip("no Chromium here: install one, or name it in FRONTIER_CHROMIUM")
	}
	theirIn, in, err := os.Pipe()
	require.NoError(t, err)
	out, theirOut, err := os.Pipe()
	require.NoError(t, err)
	home, err := os.MkdirTemp("", "chromium")
	require.NoError(t, err)
	cmd := exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-extensions", "--disable-sync", "--disable-quic",
		"--disable-background-networking", "--disable-component-update", "--disable-breakpad", "--no-first-run", "--mute-audio", "--hide-scrollbars", "--force-color-profile=srgb",
		"--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1", "--user-data-dir="+home, "--remote-debugging-pipe", "about:blank")
	cmd.Env = append(os.Environ(), "HOME="+home)
	cmd.ExtraFiles = []*os.File{theirIn, theirOut} // its descriptors 3 and 4
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, cmd.Start())
	require.NoError(t, theirIn.Close())
	require.NoError(t, theirOut.Close())
	c := &chromium{in: in, gone: make(chan struct{}), calls: map[int]chan message{}, tabs: map[string]*tab{}}
	go c.read(out)
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // with all that it started
		_ = cmd.Wait()
		<-c.gone
		_ = in.Close()
		_ = out.Close()
		for range 100 { // what was killed may still be writing
			if os.RemoveAll(home) == nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	return c
}

// read takes what the browser says until it is gone.
func (c *chromium) read(out *os.File) {
	defer close(c.gone)
	r := bufio.NewReader(out)
	for {
		b, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(b[:len(b)-1], &m) != nil {
			continue
		}
		c.mu.Lock()
		answer, tab := c.calls[m.ID], c.tabs[m.Session]
		delete(c.calls, m.ID)
		c.mu.Unlock()
		switch {
		case answer != nil:
			answer <- m
		case tab != nil:
			tab.event(m)
		}
	}
}

// send asks for something; the answer comes over the channel.
func (c *chromium) send(session, method string, params any) (<-chan message, error) {
	b, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	answer := make(chan message, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	c.calls[c.last] = answer
	if b, err = json.Marshal(message{ID: c.last, Session: session, Method: method, Params: b}); err != nil {
		return nil, err
	}
	_, err = c.in.Write(append(b, 0))
	return answer, err
}

// ask asks for something, and waits for it.
func (c *chromium) ask(t *testing.T, session, method string, params, result any) error {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	answer, err := c.send(session, method, params)
	if err != nil {
		return err
	}
	select {
	case m := <-answer:
		if m.Error != nil {
			return fmt.Errorf("%s: %s", method, m.Error.Message)
		}
		if result == nil {
			return nil
		}
		return json.Unmarshal(m.Result, result)
	case <-c.gone:
		return fmt.Errorf("%s: the browser is gone", method)
	case <-ctx.Done():
		return fmt.Errorf("%s: no answer", method)
	}
}

// call is ask where there is no reason to fail.
func (c *chromium) call(t *testing.T, session, method string, params, result any) {
	t.Helper()
	require.NoError(t, c.ask(t, session, method, params, result))
}

// args are parameters of a call.
type args map[string]any

// tab is a page, and what went wrong on it.
type tab struct {
	c       *chromium
	session string

	mu       sync.Mutex
	wrong    []string // what its console and its scripts complained of, and its dialogs
	requests []string // URLs that were asked for
	loads    int
}

// open opens an empty tab of so many pixels.
func (c *chromium) open(t *testing.T, width, height int) *tab {
	t.Helper()
	var target struct{ TargetID string }
	c.call(t, "", "Target.createTarget", args{"url": "about:blank"}, &target)
	var session struct{ SessionID string }
	c.call(t, "", "Target.attachToTarget", args{"targetId": target.TargetID, "flatten": true}, &session)
	x := &tab{c: c, session: session.SessionID}
	c.mu.Lock()
	c.tabs[x.session] = x
	c.mu.Unlock()
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		x.do(t, domain+".enable", args{})
	}
	x.size(t, width, height)
	return x
}

func (x *tab) do(t *testing.T, method string, params args) {
	t.Helper()
	x.c.call(t, x.session, method, params, nil)
}

// size makes the tab so large; below 500 pixels it is a phone.
func (x *tab) size(t *testing.T, width, height int) {
	t.Helper()
	x.do(t, "Emulation.setDeviceMetricsOverride", args{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500})
}

// scheme is light or dark.
func (x *tab) scheme(t *testing.T, s string) {
	t.Helper()
	x.do(t, "Emulation.setEmulatedMedia", args{"features": []args{{"name": "prefers-color-scheme", "value": s}}})
}

// event notes what happened.
func (x *tab) event(m message) {
	var p struct {
		Type, Message    string
		Entry            struct{ Level, Text, URL string }
		Request          struct{ URL string }
		Args             []struct{ Value any }
		ExceptionDetails struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	_ = json.Unmarshal(m.Params, &p)
	x.mu.Lock()
	defer x.mu.Unlock()
	switch m.Method {
	case "Runtime.consoleAPICalled":
		if p.Type == "error" || p.Type == "warning" || p.Type == "assert" {
			x.wrong = append(x.wrong, fmt.Sprint("console: ", p.Args))
		}
	case "Runtime.exceptionThrown":
		x.wrong = append(x.wrong, "exception: "+p.ExceptionDetails.Text+" "+p.ExceptionDetails.Exception.Description)
	case "Log.entryAdded":
		if p.Entry.Level == "error" || p.Entry.Level == "warning" {
			x.wrong = append(x.wrong, "log: "+p.Entry.Text+" "+p.Entry.URL)
		}
	case "Page.javascriptDialogOpening":
		x.wrong = append(x.wrong, "dialog: "+p.Message)
		_, _ = x.c.send(x.session, "Page.handleJavaScriptDialog", args{"accept": false})
	case "Network.requestWillBeSent":
		x.requests = append(x.requests, p.Request.URL)
	case "Page.loadEventFired":
		x.loads++
	}
}

// complaints are what went wrong so far; they are forgotten.
func (x *tab) complaints() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	all := x.wrong
	x.wrong = nil
	return all
}

// asked are the URLs that were asked for.
func (x *tab) asked() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return append([]string(nil), x.requests...)
}

func (x *tab) loaded() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.loads
}
