// This file lists the leases that clients of a served frontier have, and ends them.

package console

import (
	"fmt"
	"net/http"
	"time"

	"github.com/seed-7440039f/frontier"
)

// Lease is one that a client of a served frontier has.
type Lease struct {
	Lease  string    `json:"lease"`         // its ID
	Client string    `json:"client"`        // the name of its token or certificate, else its address
	Host   string    `json:"host"`          // that it may contact
	URL    string    `json:"url,omitempty"` // empty: the lease is for a contact only
	Crawl  string    `json:"crawl,omitempty"`
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until"` // when it ends by itself
	// Earlier says that a server that has stopped since handed it out: its URL waits again, and its
	// host is left alone.
	Earlier bool `json:"earlier,omitempty"`
}

// LeaseQuery says which leases. What is empty does not narrow them.
type LeaseQuery struct {
	Lease  string         // an ID
	Client string         // as in Lease.Client
	Scope  frontier.Scope // of hosts; the zero Scope: all
	N      int            // the oldest N are listed; zero means 100, and 10,000 is the most
}

// maxLeases is how many leases an answer has at most.
const maxLeases = 10_000

// LeaseList is an answer: the oldest first.
type LeaseList struct {
	Leases []Lease `json:"leases"`
	Total  int     `json:"total"` // how many there are, also those that are not in the list
}

// errNoLeases is returned where no client takes leases.
var errNoLeases = fmt.Errorf("%w: no server runs here whose clients have leases", ErrAction)

// leases lists them.
func (c *Console) leases(r *http.Request) (any, error) {
	q := &query{r: r}
	x := LeaseQuery{Client: q.str("client"), Scope: q.scope(c.f), N: q.num("n", maxLeases, 100)}
	if err := q.err(); err != nil {
		return nil, err
	}
	if c.o.Leases == nil {
		return nil, errNoLeases
	}
	release, err := c.scan()
	if err != nil {
		return nil, err
	}
	defer release()
	return c.o.Leases(x), nil
}

// endLeases ends those of an Action.
func (c *Console) endLeases(a Action, s frontier.Scope) (Result, error) {
	if c.o.EndLeases == nil {
		return Result{}, errNoLeases
	}
	n, err := c.o.EndLeases(LeaseQuery{Lease: a.Lease, Client: a.Client, Scope: s})
	if err == nil && n == 0 && a.Lease != "" {
		err = frontier.ErrNotLeased
	}
	text := plural(int64(n), "lease")
	if a.Client != "" {
		text += " that " + a.Client + " had"
	}
	if a.Lease == "" {
		text += " of " + s.String()
	}
	return Result{Said: text + " ended: the URLs wait again, and the hosts are left alone as after a contact", Count: int64(n)}, err
}

// leasesPage shows them to who may end them.
func (c *Console) leasesPage(w http.ResponseWriter, r *http.Request) {
	if !c.entered(r) {
		c.askToken(w, r, false)
		return
	}
	x, err := c.leases(r)
	l, _ := x.(LeaseList)
	c.show(w, r, "leases.html", "Leases", leasesData{l, l.Total - len(l.Leases), r.FormValue("client"), r.FormValue("scope")}, err)
}

// leasesData is what the list of leases shows.
type leasesData struct {
	LeaseList
	More          int
	Client, Scope string
}
