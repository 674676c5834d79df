// This file passes what the server logs to a slog.Logger.

package etcd

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"strings"

	"go.uber.org/zap/zapcore"
)

// core is a zapcore.Core for warnings and errors.
type core struct {
	log    *slog.Logger
	fields []zapcore.Field
}

// expected are warnings about settings that fit here, where only this process is a client of its server, and one that a
// server repeats hundreds of times while it applies its log.
var expected = []string{"failed to publish local member to cluster through raft", "simple token is not cryptographically signed", "Running http and grpc server on single port. This is not recommended for production."}

func (c *core) Enabled(l zapcore.Level) bool { return l >= zapcore.WarnLevel }
func (c *core) Sync() error                  { return nil }

func (c *core) With(fields []zapcore.Field) zapcore.Core {
	return &core{c.log, append(c.fields[:len(c.fields):len(c.fields)], fields...)}
}

func (c *core) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) && !slices.Contains(expected, e.Message) {
		return to.AddCore(e, c)
	}
	return to
}

func (c *core) Write(e zapcore.Entry, fields []zapcore.Field) error {
	enc := zapcore.NewMapObjectEncoder()
	for _, f := range append(c.fields[:len(c.fields):len(c.fields)], fields...) {
		f.AddTo(enc)
	}
	if why, _ := enc.Fields["error"].(string); strings.Contains(why, net.ErrClosed.Error()) { // Close closes listeners
		return nil
	}
	level := slog.LevelWarn
	if e.Level >= zapcore.ErrorLevel {
		level = slog.LevelError
	}
	var attrs []slog.Attr
	for k, v := range enc.Fields {
		attrs = append(attrs, slog.Any(k, v))
	}
	c.log.LogAttrs(context.Background(), level, "etcd: "+e.Message, attrs...)
	return nil
}
