// This file answers operators about the fleet.

package crossing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/seed-7440039f/frontier/fleet"
)

// Path is where operators ask. GET says what this machine knows of the fleet, as fleet.State. POST with
// ?drain=NODE drains a machine, and with &back=true lets it take the frontier again; ?stop=NODE ends its process
// in order; ?admit=NODE&at=HOST:PORT and ?remove=NODE change who takes part.
const Path = "/v1/fleet"

// changeTime is how long a change may take.
const changeTime = 30 * time.Second

// Members are the servers of an engine that says who takes part.
type Members interface {
	// Admit lets a node in that has an empty folder: a new one, or in place of the one of this name.
	Admit(ctx context.Context, node, address string) error
	// Remove ends the part of a node, or of one that was let in and has not started; there may be none. Others
	// that were let in and have not started may take part no more, either.
	Remove(ctx context.Context, node string) (found bool, err error)
}

// ServeHTTP answers at Path. It does not know who may ask.
func (x *Crossing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	x.mu.Lock()
	node, client, members, stop := x.node, x.client, x.members, x.stop
	x.mu.Unlock()
	if node == nil {
		fail(w, http.StatusServiceUnavailable, "this machine has not joined the fleet yet")
		return
	}
	if r.Method == http.MethodPost {
		s, q := node.State(), r.URL.Query()
		in, out, back := q.Get("admit"), q.Get("remove"), q.Get("back")
		name := q.Get("drain") + q.Get("stop") + in + out
		at := slices.IndexFunc(s.Nodes, func(n fleet.NodeState) bool { return n.Node == name && n.Alive })
		ctx, cancel := context.WithTimeout(r.Context(), changeTime)
		defer cancel()
		status, err := http.StatusServiceUnavailable, error(nil)
		switch {
		case back != "" && back != "true" && back != "false":
			status, err = http.StatusBadRequest, fmt.Errorf("back is %.64q; want true or false", back)
		case in+out != "" && at >= 0:
			status, err = http.StatusConflict, fmt.Errorf("machine %s is alive: stop it first; that it died is noticed after -fleet-ttl and a tenth", name)
		case in != "" && members == nil:
			status, err = http.StatusConflict, errors.New("a new machine of this fleet takes part as soon as it is started")
		case in != "" && !(fleet.IsName(in) && fleet.IsAddress(q.Get("at"))):
			status, err = http.StatusBadRequest, fmt.Errorf("admit is %.64q, and at %.128q; want a name and HOST:PORT", in, q.Get("at"))
		case in != "":
			err = members.Admit(ctx, in, q.Get("at"))
		case out != "":
			var found bool
			if err = node.Forget(ctx, out); err == nil && members != nil { // Forget fails if the machine is alive after all
				found, err = members.Remove(ctx, out)
			}
			if err == nil && !found && !slices.ContainsFunc(s.Nodes, func(n fleet.NodeState) bool { return n.Node == out }) {
				status, err = http.StatusNotFound, fmt.Errorf("there is no machine %.64q", out)
			}
		case at < 0:
			status, err = http.StatusNotFound, fmt.Errorf("drain or stop is %.64q; want the name of a machine that is alive", name)
		case name != s.Node:
			if err = pass(w, client, s.Nodes[at].Address+Path+"?"+q.Encode()); err == nil {
				return
			}
		case q.Get("stop") != "":
			stop(nil)
		default:
			err = node.Drain(ctx, back == "true")
		}
		if err != nil && ctx.Err() != nil {
			err = fmt.Errorf("the machines have not agreed within %v: %w", changeTime, err)
		}
		if err != nil {
			fail(w, status, err.Error())
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
