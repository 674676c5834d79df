package main

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Idle connections keep no client out.
func TestServeBoundsConnections(t *testing.T) {
	base, stop, _ := serving(t, "-dir", filepath.Join(t.TempDir(), "state"), "-max-connections", "2")
	var held []net.Conn
	for range 20 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
		require.NoError(t, err)
		defer conn.Close()
		held = append(held, conn)
	}
	code, text := request(t, "GET", base+"/livez", "", "")
	assert.Equal(t, 200, code, text)
	for _, conn := range held[:18] {
		b, err := io.ReadAll(conn)
		assert.Empty(t, b)
		assert.NoError(t, err, "it was closed")
	}
	assert.Zero(t, stop())
}

func TestClosedConnectionsAreLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c := newConnections(1, slog.New(slog.NewTextHandler(&log, nil)))
		begin := func() net.Conn {
			conn, _ := net.Pipe()
			c.state(conn, http.StateNew)
			return conn
		}
		warnings := func() int { return strings.Count(log.String(), "level=WARN") }
		c.state(begin(), http.StateActive)
		assert.Zero(t, warnings())
		for range 3 {
			c.state(begin(), http.StateClosed)
		}
		assert.Equal(t, 1, warnings())
		time.Sleep(time.Minute)
		begin()
		assert.Equal(t, 2, warnings())
	})
}
