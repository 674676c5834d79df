package robots

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// plainMatch is a matcher without index or table: the whole pattern, from left to right.
func plainMatch(r *rule, path string) bool {
	part, rest, star := strings.Cut(r.pattern, wildcard)
	if !strings.HasPrefix(path, part) {
		return false
	}
	path = path[len(part):]
	for star {
		part, rest, star = strings.Cut(rest, wildcard)
		if !star && r.end {
			return strings.HasSuffix(path, part)
		}
		i := strings.Index(path, part)
		if i < 0 {
			return false
		}
		path = path[i+len(part):]
	}
	return !r.end || path == ""
}

// plainDecide asks one rule after the other.
func plainDecide(r *Rules, path string) int32 {
	for i := range r.rules {
		if plainMatch(&r.rules[i], path) {
			return int32(i)
		}
	}
	return noRule
}

// matches asks a rule alone, by the table and the index.
func matches(r rule, path string) bool {
	rules := &Rules{rules: []rule{r}}
	rules.arrange()
	return rules.decide(path, 0) == 0
}

func sameAsPlain(t require.TestingT, r *Rules, path string) {
	want := plainDecide(r, path)
	require.Equal(t, want, r.decide(path, patience), path)
	require.Equal(t, want, r.decide(path, 0), path)
}

func TestTableAgainstPlain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.StringMatching(`(allow|disallow): (/?[ab]{0,3}|/[ab*]{0,12}|/(a{1,3}\*|[ab]{1,4}\*){1,5}[abc])(\$|%24|%2A)?`)
		body := strings.Join(rapid.SliceOfN(line, 0, 60).Draw(t, "lines"), "\n")
		r := group1(t, body)
		for _, path := range rapid.SliceOfN(rapid.StringMatching(`/([ab$*]{0,40}|(ab?){0,20}|a{0,30}b?)`), 1, 5).Draw(t, "paths") {
			sameAsPlain(t, r, urlForm.Normalize(path))
		}
	})
}

func TestIndexFindsTheFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path := rapid.OneOf(rapid.StringMatching(`[ab]{0,70}`), rapid.StringMatching(`(abc?){0,30}`), rapid.String()).Draw(t, "path")
		x := newIndex(path)
		for range 20 {
			from := rapid.IntRange(0, len(path)).Draw(t, "from")
			text := rapid.StringMatching(`[abc]{1,5}`).Draw(t, "text")
			if cut := rapid.IntRange(0, len(path)).Draw(t, "cut"); rapid.Bool().Draw(t, "of the path") && cut < len(path) {
				text = path[cut:min(len(path), cut+rapid.IntRange(1, 9).Draw(t, "size"))]
			}
			want := strings.Index(path[from:], text)
			if want >= 0 {
				want += from + len(text)
			}
			require.Equal(t, want, x.after(from, text), "%q from %d of %q", text, from, path)
		}
		assert.Less(t, len(x.states), 2*len(path)+2)
		assert.LessOrEqual(t, len(x.edges), 3*len(path))
	})
}

// Files of the largest size, made to take long, are decided about as before.
func TestHostileRules(t *testing.T) {
	for name, c := range hostileRules() {
		t.Run(name, func(t *testing.T) {
			r := Parse([]byte(c.body)).Group("bot")
			for _, path := range []string{c.path, c.path[:40] + "b"} {
				sameAsPlain(t, r, path)
			}
			assert.Less(t, r.Size(), 10*MaxSize)
		})
	}
}

// An index is built, which needs memory, only for many rules with wildcards, and only if
// they can match.
func TestIndexWhenItPays(t *testing.T) {
	rules := func(rule string, n int) *Rules { return group1(t, strings.Repeat("disallow: "+rule+"\n", n)) }
	few, many := rules("/*b*c", patience), rules("/*b*c", patience+1)
	other, ends := rules("/x*b", 10*patience), rules("/a$", 10*patience)
	path := "/" + strings.Repeat("a", 1_000)
	allocs := func(r *Rules) float64 { return testing.AllocsPerRun(10, func() { r.Allowed(path) }) }
	assert.Zero(t, allocs(few))
	assert.Zero(t, allocs(other))
	assert.Zero(t, allocs(ends))
	assert.NotZero(t, allocs(many))
}
