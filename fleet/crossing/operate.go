// This file answers operators about the fleet.

package crossing

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/seed-7440039f/frontier/fleet"
)

// Path is where operators ask. GET says what this machine knows of the fleet, as fleet.State. POST with
// ?drain=NODE drains a machine, and with &back=true lets it take the frontier again.
const Path = "/v1/fleet"

// ServeHTTP answers at Path. It does not know who may ask.
func (x *Crossing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	x.mu.Lock()
	node, client := x.node, x.client
	x.mu.Unlock()
	if node == nil {
		fail(w, http.StatusServiceUnavailable, "this machine has not joined the fleet yet")
		return
	}
	if r.Method == http.MethodPost {
		s, q := node.State(), r.URL.Query()
		name, back := q.Get("drain"), q.Get("back")
		at := slices.IndexFunc(s.Nodes, func(n fleet.NodeState) bool { return n.Node == name && n.Alive })
		status, err := http.StatusServiceUnavailable, error(nil)
		switch {
		case back != "" && back != "true" && back != "false":
			status, err = http.StatusBadRequest, fmt.Errorf("back is %.64q; want true or false", back)
		case at < 0:
			status, err = http.StatusNotFound, fmt.Errorf("drain is %.64q; want the name of a machine that is alive", name)
		case name != s.Node:
			err = pass(w, client, s.Nodes[at].Address+Path+"?"+q.Encode())
		default:
			err = node.Drain(r.Context(), back == "true")
		}
		if err != nil {
			fail(w, status, err.Error())
		}
		if err != nil || name != s.Node {
			return
		}
	}
	answer(w, http.StatusOK, node.State())
}

// pass lets another machine answer.
func pass(w http.ResponseWriter, client *http.Client, url string) error {
	a, err := (&http.Client{Transport: client.Transport, Timeout: dialTime}).Post(url, "", nil)
	if err == nil {
		defer a.Body.Close()
		w.WriteHeader(a.StatusCode)
		_, _ = io.Copy(w, a.Body)
	}
	return err
}

func fail(w http.ResponseWriter, status int, why string) {
	answer(w, status, map[string]string{"error": why})
}

func answer(w http.ResponseWriter, status int, x any) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(x)
}
