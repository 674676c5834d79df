package crawler

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// check verifies the invariants of siteRecord.
func (g *gate) check() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	n, bytes := 0, int64(0)
	for key, r := range g.sites {
		if key != r.site {
			return fmt.Errorf("record of %s under %s", r.site, key)
		}
		if (r.state == settled) != (r.elem != nil) {
			return fmt.Errorf("%s: state %d, listed %v", r.site, r.state, r.elem != nil)
		}
		if r.elem != nil {
			n++
			bytes += r.size()
		}
	}
	if n != g.settled.Len() || bytes != g.bytes {
		return fmt.Errorf("%d settled records of %d bytes; listed %d of %d", n, bytes, g.settled.Len(), g.bytes)
	}
	return nil
}

// fakeRules allow everything but one URL.
type fakeRules struct {
	deny  string
	delay time.Duration
	size  int
}

func (r fakeRules) Allowed(url string) bool           { return url != r.deny }
func (r fakeRules) CrawlDelay() (time.Duration, bool) { return r.delay, r.delay > 0 }
func (r fakeRules) Size() int                         { return r.size }

func testGate() *gate {
	o, err := Options{}.withDefaults()
	if err != nil {
		panic(err)
	}
	return newGate(&o)
}

const (
	aSite = "http://a.example"
	aPage = "http://a.example/1"
)

func TestGateAsksOnceAndRemembers(t *testing.T) {
	g, now := testGate(), time.Unix(1000, 0)
	d := g.judge(aSite, aPage, now)
	assert.Equal(t, decision{verdict: ask, ask: question{aSite, aSite + "/robots.txt", 0}}, d)
	assert.Equal(t, decision{verdict: hold, wait: inProgress}, g.judge(aSite, aPage, now))
	g.settle(aSite, fakeRules{deny: aPage}, true, now, now)
	assert.Equal(t, forbidden, g.judge(aSite, aPage, now).verdict)
	assert.Equal(t, pass, g.judge(aSite, aSite+"/2", now).verdict)
	assert.Equal(t, ask, g.judge("https://a.example", aPage, now).verdict, "another site")

	late := now.Add(24 * time.Hour)
	assert.Equal(t, pass, g.judge(aSite, aSite+"/2", late.Add(-1)).verdict)
	assert.Equal(t, ask, g.judge(aSite, aSite+"/2", late).verdict, "expired")
	require.NoError(t, g.check())
}

func TestGateGivesUpAfterThreeTries(t *testing.T) {
	g, now := testGate(), time.Unix(1000, 0)
	for i, want := range []time.Duration{time.Second, 7 * time.Second} { // the second is what the server asked for
		require.Equal(t, ask, g.judge(aSite, aPage, now).verdict)
		wait, last := g.failed(aSite, time.Duration(i)*7*time.Second, now)
		assert.Equal(t, want, wait)
		assert.False(t, last)
		assert.Equal(t, decision{verdict: hold, wait: want}, g.judge(aSite, aPage, now))
		now = now.Add(want)
	}
	require.Equal(t, ask, g.judge(aSite, aPage, now).verdict)
	_, last := g.failed(aSite, 0, now)
	assert.True(t, last)
	assert.Equal(t, unreachable, g.judge(aSite, aPage, now).verdict)
	assert.Equal(t, ask, g.judge(aSite, aPage, now.Add(24*time.Hour)).verdict)
	require.NoError(t, g.check())
}

func TestGateKeepsAnExpiredCopyIfThereIsNoOther(t *testing.T) {
	g, now := testGate(), time.Unix(1000, 0)
	g.judge(aSite, aPage, now)
	g.settle(aSite, fakeRules{deny: aPage}, true, now, now)
	now = now.Add(25 * time.Hour)
	for range 3 {
		require.Equal(t, ask, g.judge(aSite, aPage, now).verdict)
		g.failed(aSite, 0, now)
		now = now.Add(time.Minute)
	}
	assert.Equal(t, forbidden, g.judge(aSite, aPage, now).verdict)
	assert.Equal(t, pass, g.judge(aSite, aSite+"/2", now).verdict)
	require.NoError(t, g.check())
}

func TestGateReleasedQuestionIsAskedAgain(t *testing.T) {
	g, now := testGate(), time.Unix(1000, 0)
	g.judge(aSite, aPage, now)
	g.follow(aSite, aSite+"/other", 1, now)
	d := g.judge(aSite, aPage, now)
	assert.Equal(t, question{aSite, aSite + "/other", 1}, d.ask)
	g.release(aSite, now)
	assert.Equal(t, d, g.judge(aSite, aPage, now), "a redirect is not forgotten")
}

func TestGateAppliesADelayThatTheFrontierDoesNotKnow(t *testing.T) {
	g, now := testGate(), time.Unix(1000, 0)
	g.judge(aSite, aPage, now)
	g.settle(aSite, fakeRules{delay: 5 * time.Second}, false, now.Add(-2*time.Second), now)
	assert.Equal(t, decision{verdict: hold, wait: 3 * time.Second, delay: 5 * time.Second}, g.judge(aSite, aPage, now))
	assert.Equal(t, decision{verdict: pass, delay: 5 * time.Second}, g.judge(aSite, aPage, now))

	g.maxDelay = time.Second
	assert.Equal(t, time.Second, g.judge(aSite, aPage, now).delay, "bounded")
}

func TestGateMemoryIsBounded(t *testing.T) {
	g, now := testGate(), time.Unix(1000, 0)
	g.limit = 100_000
	for i := range 1000 {
		site := fmt.Sprintf("http://h%d.example", i)
		require.Equal(t, ask, g.judge(site, site+"/", now).verdict)
		g.settle(site, fakeRules{size: 1000}, true, now, now)
		require.LessOrEqual(t, g.bytes, g.limit)
		require.Equal(t, pass, g.judge("http://h0.example", "http://h0.example/", now).verdict, "recently used")
	}
	assert.Less(t, len(g.sites), 100)
	assert.Equal(t, ask, g.judge("http://h1.example", "http://h1.example/", now).verdict)
	g.found("http://h1.example", fakeRules{}, now, now) // is being asked for
	g.found("http://new.example", fakeRules{}, now, now)
	assert.Equal(t, pass, g.judge("http://new.example", "http://new.example/", now).verdict)
	require.NoError(t, g.check())
}
