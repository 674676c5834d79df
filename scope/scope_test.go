package scope

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestScopes(t *testing.T) {
	for _, x := range []struct {
		is       Scope
		text     string
		contains string // of a to d: a.example, www.a.example and xa.example of crawl 0, and a.example of crawl 7
	}{
		{Scope{}, "*", "abcd"},
		{All(), "*", "abcd"},
		{Host("a.example"), "a.example", "ad"},
		{Host(""), "", ""},
		{Domain("a.example"), "*.a.example", "abd"},
		{Crawl(7), "crawl:7", "d"},
		{Crawl(0), "crawl:0", "abc"},
	} {
		assert.Equal(t, x.text, x.is.String())
		got := ""
		for _, u := range []struct {
			name, host string
			crawl      uint32
		}{{"a", "a.example", 0}, {"b", "www.a.example", 0}, {"c", "xa.example", 0}, {"d", "a.example", 7}} {
			if x.is.Contains(u.host, u.crawl) {
				got += u.name
			}
		}
		assert.Equal(t, x.contains, got, x.text)
		if _, ok := x.is.Crawl(); !ok {
			assert.Equal(t, x.is, Of(x.is.Hosts()))
		}
	}
	id, ok := Crawl(7).Crawl()
	assert.True(t, ok)
	assert.Equal(t, uint32(7), id)
	assert.Empty(t, Crawl(7).Hosts().Host())
}
