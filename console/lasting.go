// This file tells programs on this machine when this process has ended.

package console

import (
	"io"
	"net"
	"net/http"
	"sync"
)

// EndPath is where UntilEnd answers.
const EndPath = "/api/end"

// lasting are connections that only the end of the process closes.
var lasting struct {
	mu    sync.Mutex
	conns []net.Conn // guarded by mu; what is not referenced would be closed as garbage
}

// UntilEnd answers with a line, over a connection that this process never closes. The kernel does when the process has
// ended, however that came. Local has it at EndPath.
func UntilEnd(w http.ResponseWriter, _ *http.Request) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		writeJSON(w, http.StatusNotImplemented, map[string]string{"error": "console: " + err.Error()})
		return
	}
	lasting.mu.Lock()
	defer lasting.mu.Unlock()
	lasting.conns = append(lasting.conns, c)
	_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nthis process runs\n")
}
