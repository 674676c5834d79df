// This file passes what the server logs to a slog.Logger.

package nats

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
)

// expected begin warnings about settings that fit here, where only this process is a client of its server, and about what every start has.
var expected = []string{"Plaintext passwords detected", "Waiting for routing to be established", "JetStream has not established contact with a meta leader", "Metalayer blocking snapshot"}

// logger is a server.Logger for warnings and errors.
type logger struct {
	to    *slog.Logger           // nil: to none
	last  atomic.Pointer[string] // the last error
	fatal atomic.Bool            // it is the reason why the server did not start
}

func (l *logger) Noticef(string, ...any) {}
func (l *logger) Debugf(string, ...any)  {}
func (l *logger) Tracef(string, ...any)  {}

func (l *logger) Warnf(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	if l.to != nil && !slices.ContainsFunc(expected, func(s string) bool { return strings.HasPrefix(text, s) }) {
		l.to.Warn("nats: " + text)
	}
}

// Errorf has as a warning that another machine does not answer: it may be stopped, or not started yet.
func (l *logger) Errorf(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	switch l.last.Store(&text); {
	case l.to == nil:
	case strings.HasPrefix(text, "Error trying to connect to route"):
		l.to.Warn("nats: " + text)
	default:
		l.to.Error("nats: " + text)
	}
}

func (l *logger) Fatalf(format string, v ...any) {
	l.Errorf(format, v...)
	l.fatal.Store(true)
}

// refused returns why the server did not start: nil if it did.
func (l *logger) refused() error {
	if !l.fatal.Load() {
		return nil
	}
	return errors.New(*l.last.Load())
}
