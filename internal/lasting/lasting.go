// Package lasting lets programs on this machine see when this process has ended. It owns the connections over which
// they wait.
package lasting

import (
	"io"
	"net"
	"net/http"
	"sync"
)

// Path is where UntilEnd answers.
const Path = "/api/end"

var (
	mu    sync.Mutex
	conns []net.Conn // guarded by mu; what is not referenced would be closed as garbage
)

// UntilEnd answers with a line, over a connection that this process never closes. The kernel does when the process has
// ended, however that came.
func UntilEnd(w http.ResponseWriter, _ *http.Request) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotImplemented)
		return
	}
	mu.Lock()
	defer mu.Unlock()
	conns = append(conns, c)
	_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nthis process runs\n")
}
