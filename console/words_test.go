package console

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-7440039f/frontier/event"
)

// A notice says where its event was, and no more of it than there is.
func TestNotices(t *testing.T) {
	n := notice(event.Event{Kind: event.LeaseExpired, Host: "a.example", URL: "http://a.example/", Attempt: 2})
	assert.Equal(t, "a.example", n.Host)
	assert.Equal(t, "try 2", n.Text)
	n = notice(event.Event{Kind: event.URLGivenUp, Host: "a.example", URL: "http://a.example/", Attempt: 2, Failure: "dns", Reason: "tries used up"})
	assert.Equal(t, "tries used up; try 2: dns", n.Text)
	assert.Equal(t, "crawl errors; of crawl 7", notice(event.Event{Kind: event.LimitReached, Crawl: 7, Reason: "crawl errors"}).Text)
	assert.Equal(t, "*", notice(event.Event{Kind: event.LimitReached, Scope: "*"}).Host)
	assert.Empty(t, notice(event.Event{Kind: event.StoreError}).Host)
}
