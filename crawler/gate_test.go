package crawler

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/internal/lab/drift"
)

// check verifies the invariants of siteRecord.
func (g *gate) check() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	n, bytes, failing, answering := 0, int64(0), int64(0), map[string]int{}
	for key, r := range g.sites {
		if key != r.site {
			return fmt.Errorf("record of %s under %s", r.site, key)
		}
		if (r.state == settled || r.state == pending) != (r.elem != nil) {
			return fmt.Errorf("%s: state %d, listed %v", r.site, r.state, r.elem != nil)
		}
		if r.elem != nil {
			n++
			bytes += r.size()
		}
		switch {
		case r.state == settled && r.rules == nil && !r.blocked:
			return fmt.Errorf("%s is settled without rules", r.site)
		case r.state == settled && r.rules != nil:
			answering[hostOf(r.site)]++
		case r.state == pending && r.tries > 0:
			failing++
		}
	}
	if n != g.listed.Len() || bytes != g.bytes {
		return fmt.Errorf("%d records of %d bytes; listed %d of %d", n, bytes, g.listed.Len(), g.bytes)
	}
	if failing != g.failing || !maps.Equal(answering, g.answering) {
		return fmt.Errorf("%d sites fail and %v answer; counted %d and %v", failing, answering, g.failing, g.answering)
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
	assert.Equal(t, decision{verdict: ask, ask: question{site: aSite, target: aSite + "/robots.txt"}}, d)
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

// However often robots.txt cannot be had, that gives no URL up.
func TestGateNeverGivesUp(t *testing.T) {
	g, now := testGate(), time.Unix(1000, 0)
	for i := range 22 {
		want := min(time.Second<<i, 24*time.Hour)
		retryAfter := time.Duration(0)
		if i == 1 {
			want, retryAfter = 7*time.Second, 7*time.Second // what the server asked for
		}
		d := g.judge(aSite, aPage, now)
		require.Equal(t, ask, d.verdict)
		assert.Equal(t, i > 0, d.ask.again)
		wait, stale := g.failed(aSite, false, retryAfter, now)
		assert.Equal(t, want, wait)
		assert.False(t, stale)
		require.EqualValues(t, 1, g.unreachable())
		require.NoError(t, g.check())
		// Twice as many URLs as after the last try step aside.
		for range 1 << min(i, 16) {
			require.Equal(t, decision{verdict: later, wait: want}, g.judge(aSite, aPage, now))
		}
		require.Equal(t, decision{verdict: hold, wait: min(want, holdMost)}, g.judge(aSite, aPage, now))
		now = now.Add(want)
	}
	require.Equal(t, ask, g.judge(aSite, aPage, now).verdict)
	g.settle(aSite, fakeRules{}, true, now, now)
	assert.Equal(t, pass, g.judge(aSite, aPage, now).verdict)
	assert.Zero(t, g.unreachable())
	require.NoError(t, g.check())
}

func TestGateLetsASiteStepAsideIfItsHostAnswersElsewhere(t *testing.T) {
	g, now := testGate(), time.Unix(1000, 0)
	const other = aSite + ":81"
	require.Equal(t, ask, g.judge(other, other+"/", now).verdict)
	g.failed(other, false, 0, now)
	require.Equal(t, later, g.judge(other, other+"/1", now).verdict)
	require.Equal(t, hold, g.judge(other, other+"/2", now).verdict, "nothing else of the host is known")
	g.judge(aSite, aPage, now)
	g.settle(aSite, fakeRules{}, true, now, now)
	for range 100 {
		require.Equal(t, later, g.judge(other, other+"/2", now).verdict)
	}
	require.NoError(t, g.check())
}

func TestGateWaitsForAnotherHostForTwoMinutes(t *testing.T) {
	g, start := testGate(), time.Unix(1000, 0)
	now, n := start, 0
	for {
		d := g.judge(aSite, aPage, now)
		if d.verdict == hold {
			now = now.Add(d.wait)
			continue
		}
		require.Equal(t, ask, d.verdict)
		if !g.stand(aSite, "http://b.example/x", 2, 0, now) {
			break
		}
		n++
	}
	assert.WithinDuration(t, start.Add(stuckMost), now, 40*time.Second)
	assert.Less(t, n, 30, "ever more rarely")
	g.failed(aSite, true, 0, now)
	d := g.judge(aSite, aPage, now.Add(time.Second))
	assert.Equal(t, question{site: aSite, target: aSite + "/robots.txt", again: true, owed: true}, d.ask)
	assert.False(t, g.stand(aSite, "http://b.example/x", 2, 3*time.Minute, now), "that is too long from the beginning")

	g.failed(aSite, true, 0, now)
	now = now.Add(time.Hour) // for which the frontier held the host
	assert.Equal(t, decision{verdict: later, wait: time.Second}, g.judge(aSite, aPage, now), "others of the host come up")
	assert.Equal(t, ask, g.judge(aSite, aPage, now.Add(time.Second)).verdict)
}

func TestGateKeepsAnExpiredCopyIfThereIsNoOther(t *testing.T) {
	g, now := testGate(), time.Unix(1000, 0)
	g.judge(aSite, aPage, now)
	g.settle(aSite, fakeRules{deny: aPage}, true, now, now)
	now = now.Add(25 * time.Hour)
	for range 3 {
		for g.judge(aSite, aPage, now).verdict == later {
			now = now.Add(time.Second)
		}
		g.failed(aSite, false, 0, now)
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
	assert.Equal(t, question{site: aSite, target: aSite + "/other", hops: 1}, d.ask)
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

// Rules are believed for a day by both clocks: the steady one stands still while the
// machine is suspended, the wall's may be set back.
func TestGateBelievesNeitherClockAlone(t *testing.T) {
	for name, apart := range map[string]time.Duration{"suspended": 25 * time.Hour, "set back": -25 * time.Hour, "neither": 0} {
		g, now := testGate(), time.Now()
		g.judge(aSite, aPage, now)
		g.settle(aSite, fakeRules{}, true, now, now)
		later := drift.Time(now.Add(max(apart, 0)), apart)
		_, known := g.known(aSite, later)
		assert.Equal(t, apart == 0, known, name)
		want := ask
		if apart == 0 {
			want = pass
		}
		assert.Equal(t, want, g.judge(aSite, aPage, later).verdict, name)
	}
}

// Of a host that wants pauses as long as rules are believed, each contact would be for
// robots.txt: rules that let no URL through serve for one more.
func TestGateUsesRulesOnce(t *testing.T) {
	g, now := testGate(), time.Unix(1000, 0)
	g.judge(aSite, aPage, now)
	g.settle(aSite, fakeRules{delay: 24 * time.Hour}, true, now, now)
	now = now.Add(25 * time.Hour)
	assert.Equal(t, pass, g.judge(aSite, aPage, now).verdict)
	assert.Equal(t, ask, g.judge(aSite, aPage, now).verdict, "once")

	g.settle(aSite, fakeRules{delay: time.Second}, true, now, now)
	assert.Equal(t, ask, g.judge(aSite, aPage, now.Add(25*time.Hour)).verdict, "a short pause is no reason")
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
	for i := range 1000 {                               // nor do sites that cannot be had take more
		site := fmt.Sprintf("http://dead%d.example", i)
		require.Equal(t, ask, g.judge(site, site+"/", now).verdict)
		g.failed(site, false, 0, now)
		require.LessOrEqual(t, g.bytes, g.limit)
	}
	assert.Less(t, len(g.sites), 400)
	g.found("http://new.example", fakeRules{}, now, now)
	assert.Equal(t, pass, g.judge("http://new.example", "http://new.example/", now).verdict)
	require.NoError(t, g.check())
}
