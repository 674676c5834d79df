// This file lists and ends leases of a served frontier's clients.

package console

import (
	"fmt"
	"net/http"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/scope"
)

// Lease is a lease of a served frontier's client.
type Lease struct {
	Lease  string    `json:"lease"`         // its ID
	Client string    `json:"client"`        // the name of its token or certificate, or its address
	Host   string    `json:"host"`          // the host that it may contact
	URL    string    `json:"url,omitempty"` // empty: the lease is for a contact only
	Crawl  string    `json:"crawl,omitempty"`
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until"` // its deadline
	// Earlier marks a lease from before the server's last restart: its URL waits again, and its host
	// stays reserved.
	Earlier bool `json:"earlier,omitempty"`
}

// LeaseQuery selects leases. Empty fields select all.
type LeaseQuery struct {
	Lease  string      // lease ID
	Client string      // as in Lease.Client
	Scope  scope.Scope // of hosts; the zero Scope: all
	N      int         // most leases, the oldest; zero means 100, at most 10,000
}

// maxLeases is the most leases in a response.
const maxLeases = 10_000

// LeaseList is a list of leases, the oldest first.
type LeaseList struct {
	Leases []Lease `json:"leases"`
	Total  int     `json:"total"` // how many match, in the list or not
}

// errNoLeases is returned if no server with clients runs here.
var errNoLeases = fmt.Errorf("%w: no server runs here whose clients have leases", ErrAction)

// leases lists leases.
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

// endLeases ends the leases that an Action selects.
func (c *Console) endLeases(a Action, s scope.Scope) (Result, error) {
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

// leasesPage shows leases to operators who may end them.
func (c *Console) leasesPage(w http.ResponseWriter, r *http.Request) {
	if !c.entered(r) {
		c.askToken(w, r, false)
		return
	}
	x, err := c.leases(r)
	l, _ := x.(LeaseList)
	c.show(w, r, "leases.html", "Leases", leasesData{l, l.Total - len(l.Leases), r.FormValue("client"), r.FormValue("scope")}, err)
}

// leasesData is the data of the leases page.
type leasesData struct {
	LeaseList
	More          int
	Client, Scope string
}
