// This file answers operators about the fleet.

package crossing

import (
	"encoding/json"
	"net/http"
)

// Path is where operators ask: GET says what this machine knows of the fleet, as fleet.State.
const Path = "/v1/fleet"

// ServeHTTP answers at Path. It does not know who may ask.
func (x *Crossing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x.mu.Lock()
	node := x.node
	x.mu.Unlock()
	if node == nil {
		answer(w, http.StatusServiceUnavailable, map[string]string{"error": "this machine has not joined the fleet yet"})
		return
	}
	answer(w, http.StatusOK, node.State())
}

func answer(w http.ResponseWriter, status int, x any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(x)
}
