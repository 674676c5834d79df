//go:build unix

// This file drives pages like an operator: it opens, reads and clicks them and types into them, with
// mouse and key events that the page cannot distinguish from real ones.

package browser

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// goTo opens an address, and waits until its page is whole.
func (x *tab) goTo(t *testing.T, url string) {
	t.Helper()
	before := x.loaded()
	x.do(t, "Page.navigate", args{"url": url})
	x.until(t, "the page is there", func() bool { return x.loaded() > before })
}

// until waits for something to become true.
func (x *tab) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v; wrong: %q; the page says: %s", what, patience, x.complaints(), x.text(t, "main"))
		}
	}
}

// eval is the value of an expression on the page. It works without JavaScript, too.
func eval[T any](t *testing.T, x *tab, expression string) T {
	t.Helper()
	value, err := tryEval[T](t, x, expression)
	require.NoError(t, err, expression)
	return value
}

// tryEval is eval while one page may be giving way to another.
func tryEval[T any](t *testing.T, x *tab, expression string) (value T, err error) {
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct{ Exception struct{ Description string } }
	}
	err = x.c.ask(t, x.session, "Runtime.evaluate", args{"expression": expression, "returnByValue": true, "awaitPromise": true}, &r)
	if err == nil && r.ExceptionDetails != nil {
		err = errors.New(r.ExceptionDetails.Exception.Description)
	}
	if err == nil && len(r.Result.Value) > 0 {
		err = json.Unmarshal(r.Result.Value, &value)
	}
	return value, err
}

// quoted is a string as JavaScript writes it.
func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// text is what an element says, or "" if there is none.
func (x *tab) text(t *testing.T, selector string) string {
	s, _ := tryEval[string](t, x, "document.querySelector("+quoted(selector)+")?.innerText ?? ''")
	return s
}

// says waits until an element says something.
func (x *tab) says(t *testing.T, selector, want string) {
	t.Helper()
	x.until(t, selector+" says "+want, func() bool { return strings.Contains(x.text(t, selector), want) })
}

// click presses the mouse in the middle of an element, once the page has it.
func (x *tab) click(t *testing.T, selector string) {
	t.Helper()
	type point struct{ X, Y float64 }
	x.until(t, selector+" is there", func() bool {
		there, _ := tryEval[bool](t, x, "document.querySelector("+quoted(selector)+") !== null")
		return there
	})
	at := eval[point](t, x, `(() => { const e = document.querySelector(`+quoted(selector)+`); e.scrollIntoView({block: "center", behavior: "instant"});
		const r = e.getBoundingClientRect(); return {X: r.x + r.width / 2, Y: r.y + r.height / 2}; })()`)
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		x.do(t, "Input.dispatchMouseEvent", args{"type": kind, "x": at.X, "y": at.Y, "button": "left", "clickCount": 1})
	}
}

// fill clicks into a field, and types. What is live above it may move it just then: so it
// looks whether it was hit.
func (x *tab) fill(t *testing.T, selector, text string) {
	t.Helper()
	x.until(t, "the focus is in "+selector, func() bool {
		x.click(t, selector)
		return x.focused(t, selector)
	})
	eval[any](t, x, "document.activeElement.select()")
	x.write(t, text)
}

// submit clicks a button, and again if it was missed, until the page says something.
func (x *tab) submit(t *testing.T, button, want string) {
	t.Helper()
	x.until(t, want, func() bool {
		x.click(t, button)
		for range 250 {
			if strings.Contains(x.text(t, "#said"), want) {
				return true
			}
			time.Sleep(20 * time.Millisecond)
		}
		return false
	})
}

// focused reports whether an element has the focus.
func (x *tab) focused(t *testing.T, selector string) bool {
	yes, _ := tryEval[bool](t, x, "document.activeElement?.matches("+quoted(selector)+") ?? false")
	return yes
}

// write types text where the focus is.
func (x *tab) write(t *testing.T, text string) {
	t.Helper()
	x.do(t, "Input.insertText", args{"text": text})
}

// press presses a key: Tab, Enter.
func (x *tab) press(t *testing.T, key string) {
	t.Helper()
	code := map[string]int{"Tab": 9, "Enter": 13}[key]
	down := args{"type": "keyDown", "key": key, "code": key, "windowsVirtualKeyCode": code}
	if key == "Enter" {
		down["text"] = "\r"
	}
	x.do(t, "Input.dispatchKeyEvent", down)
	x.do(t, "Input.dispatchKeyEvent", args{"type": "keyUp", "key": key, "code": key, "windowsVirtualKeyCode": code})
}

// picture is the upper part of the page, as a PNG.
func (x *tab) picture(t *testing.T) []byte {
	t.Helper()
	var r struct{ Data string }
	x.c.call(t, x.session, "Page.captureScreenshot", args{"format": "png"}, &r)
	b, err := base64.StdEncoding.DecodeString(r.Data)
	require.NoError(t, err)
	return b
}
