// This file makes URLs by number, so that any of them can be made again and none must be stored.

package main

import (
	"math"
	"strconv"

	"github.com/seed-7440039f/frontier"
)

// source is a set of URLs. Its methods may be called from any goroutine.
type source interface {
	// size returns the number of URLs; a made-up set has no end.
	size() int
	// appendURL appends URL number i.
	appendURL(b []byte, i int) []byte
	// appendFresh appends URL number i of a second set, without an end, over the
	// same hosts.
	appendFresh(b []byte, i int) []byte
}

// endless is the size of a made-up set.
const endless = 1 << 40

// depthOf spreads URLs over four priorities: 75 % on one, 12, 6 and 6 % on the
// others.
func depthOf(i int) int {
	switch x := scramble(uint64(i)^odd1) & 15; {
	case x < 12:
		return 3
	case x < 14:
		return 2
	case x == 14:
		return 1
	}
	return 0
}

// hostsBy returns the host of URL number i; r is random.
type hostsBy func(i int, r uint64) uint64

// synthetic makes URLs of about 71 bytes.
type synthetic struct {
	seed  uint64
	hosts hostsBy
}

func (s *synthetic) size() int { return endless }

func (s *synthetic) appendFresh(b []byte, i int) []byte { return s.appendURL(b, endless/2+i) }

// A page belongs to a host and a section, and has a separate number.
func (s *synthetic) appendURL(b []byte, i int) []byte {
	r := scramble(s.seed ^ uint64(i))
	host := s.hosts(i, r)
	r = scramble(r)
	b = appendHost(b, host)
	for range 1 + r&1 {
		r >>= 2
		b = append(b, '/')
		b = append(b, words[r%uint64(len(words))]...)
		r >>= 6
	}
	b = append(b, '/')
	b = append(b, words[r>>8%uint64(len(words))]...)
	b = append(b, '-')
	b = strconv.AppendUint(b, unique(uint64(i)), 36)
	b = append(b, endings[r&7]...)
	if r&4 == 0 {
		b = append(b, "?id="...)
		b = strconv.AppendUint(b, r>>16&(1<<32-1), 10)
	}
	return b
}

// unique mixes the low 34 bits of i, one to one.
func unique(i uint64) uint64 {
	const mask = 1<<34 - 1
	low := i & mask
	low = low * 0x2545f4914f6cdd1d & mask
	low ^= low >> 17
	return i&^mask | low
}

func appendHost(b []byte, host uint64) []byte {
	r := scramble(host)
	b = append(b, schemes[r&3]...)
	b = append(b, words[r>>2%uint64(len(words))]...)
	b = append(b, words[r>>12%uint64(len(words))]...)
	b = strconv.AppendUint(b, host, 10)
	return append(b, domains[r>>24&7]...)
}

var (
	schemes = [4]string{"http://", "https://www.", "https://", "http://www."}
	domains = [8]string{".example", ".example.com", ".example.org", ".example.net", ".co.example", ".test", ".edu.example", ".example"}
	endings = [8]string{".html", ".php", "/view", "/page.php", ".html", "", ".htm", "/"}
	words   = [...]string{
		"about", "archive", "article", "autumn", "blog", "books", "bridge", "category", "city", "comments", "contact",
		"content", "cooking", "culture", "docs", "download", "events", "faq", "forum", "gallery", "garden", "guide",
		"help", "history", "images", "index", "journal", "library", "local", "market", "media", "members", "mountain",
		"museum", "music", "news", "notes", "ocean", "papers", "people", "photos", "pictures", "poems", "press",
		"products", "project", "recipes", "reports", "research", "reviews", "river", "science", "search", "services",
		"shop", "sports", "stories", "summer", "topics", "travel", "tutorials", "video", "weather", "wiki", "winter", "works",
	}
)

// zipfHosts draws from n hosts with probabilities proportional to (10+k)^-s.
//
// It stores 4096 points of the inverse distribution and interpolates linearly: a look-up in 32 KB
// that stay in the L1 cache.
func zipfHosts(n uint64, s float64) hostsBy {
	const points = 1 << 12
	// From 8192 on, neighbours have so similar weights that they are grouped in blocks.
	blocks := func(fn func(from, size uint64, weight float64)) {
		for k, size := uint64(0), uint64(1); k < n; k += size {
			size = min(max(1, k>>12), n-k)
			fn(k, size, float64(size)*math.Pow(10+float64(k)+float64(size-1)/2, -s))
		}
	}
	var sum, reached float64
	blocks(func(_, _ uint64, weight float64) { sum += weight })
	inverse, p := make([]float64, points+1), 1
	blocks(func(from, size uint64, weight float64) {
		for ; p < points && reached+weight >= sum*float64(p)/points; p++ {
			inverse[p] = float64(from) + float64(size)*(sum*float64(p)/points-reached)/weight
		}
		reached += weight
	})
	inverse[points] = float64(n)
	return func(_ int, r uint64) uint64 {
		p := r >> 52
		low, high := inverse[p], inverse[p+1]
		x := low + (high-low)*float64(r&(1<<52-1))/(1<<52)
		return min(uint64(x), n-1)
	}
}

// everyHost gives each of n hosts a URL within the first urls, and draws the hosts of the other
// URLs.
func everyHost(n, urls uint64, others hostsBy) hostsBy {
	every := max(urls/n, 1)
	step := uint64(float64(n)*0.618) | 1 // hosts in an order that is not that of their popularity
	for gcd(step, n) != 1 {
		step += 2
	}
	return func(i int, r uint64) uint64 {
		if u := uint64(i); u%every == 0 && u/every < n {
			return u / every * step % n
		}
		return others(i, r)
	}
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// halfOf gives every second URL to host 0.
func halfOf(others hostsBy) hostsBy {
	return func(i int, r uint64) uint64 {
		if i&1 == 0 {
			return 0
		}
		return others(i, r)
	}
}

func oneHost(int, uint64) uint64     { return 0 }
func ownHost(i int, _ uint64) uint64 { return uint64(i) }

// page is a batch of entries in the making. The entries of one fill share one
// piece of memory: a single allocation.
type page struct {
	text    []byte
	ends    []int
	entries []frontier.Entry
	tally   tally // of the URLs of the first set in the last fill
	fresh   tally // of those of the second set
	bytes   int64 // of all of its URLs
	isFresh []bool
}

// fill returns the URLs with the given numbers for 0 to n-1. They are valid until the next fill,
// their text for longer.
func (p *page) fill(src source, n int, number func(i int) (url int, fresh bool)) []frontier.Entry {
	p.text, p.ends, p.entries, p.isFresh = p.text[:0], p.ends[:0], p.entries[:0], p.isFresh[:0]
	p.tally, p.fresh = tally{}, tally{}
	for i := range n {
		u, fresh := number(i)
		if fresh {
			p.text = src.appendFresh(p.text, u)
		} else {
			p.text = src.appendURL(p.text, u)
		}
		p.ends, p.isFresh = append(p.ends, len(p.text)), append(p.isFresh, fresh)
		p.entries = append(p.entries, frontier.Entry{Depth: depthOf(u)})
	}
	text, from := string(p.text), 0
	for i, end := range p.ends {
		p.entries[i].URL = text[from:end]
		if p.isFresh[i] {
			p.fresh.add(text[from:end])
		} else {
			p.tally.add(text[from:end])
		}
		from = end
	}
	p.bytes = int64(len(text))
	return p.entries
}

// following numbers URLs from first on.
func following(first int) func(int) (int, bool) {
	return func(i int) (int, bool) { return first + i, false }
}
