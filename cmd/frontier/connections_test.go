package main

import (
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Connections that are held open keep nobody out.
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
