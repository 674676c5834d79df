package changefeed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
)

func open(t *testing.T, o frontier.Options) *frontier.Frontier {
	f, err := frontier.Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, f.Check())
		require.NoError(t, f.Close())
	})
	return f
}

// waiting are the URLs that wait.
func waiting(t *testing.T, f *frontier.Frontier) (urls []string) {
	for u, err := range inspect.New(f).URLs(t.Context(), scope.All(), "") {
		require.NoError(t, err)
		urls = append(urls, u.Entry.URL)
	}
	return urls
}

// What a list of either form says, and what is wrong with its lines.
func TestLists(t *testing.T) {
	good := []string{"http://a.example/1", "http://a.example/2"}
	for name, x := range map[string]struct {
		list   string
		urls   []string
		faults []string
		err    string
	}{
		"nothing":          {},
		"blanks":           {list: " \n\t\r\n \n"},
		"text":             {list: "http://a.example/1\nhttp://a.example/2", urls: good},
		"UTF-16":           {list: "\xff\xfeh\x00t\x00t\x00p\x00:\x00/\x00/\x00a\x00.\x00e\x00x\x00a\x00m\x00p\x00l\x00e\x00/\x001\x00\r\x00\n\x00h\x00t\x00t\x00p\x00:\x00/\x00/\x00a\x00.\x00e\x00x\x00a\x00m\x00p\x00l\x00e\x00/\x002\x00", urls: good},
		"text of Windows":  {list: "\uFEFFhttp://a.example/1\r\n\r\nHTTP://A.example:80/2#x\r\n", urls: good},
		"comments, blanks": {list: "# of today\n\n  http://a.example/1 \n#\nhttp://a.example/2\n", urls: good},
		"bad lines": {
			list: "http://a.example/1\n\nno url\nmailto:me@a.example\nhttp://" + strings.Repeat("x", 1<<17) + "/\nhttp://a.example/2\n/3\n", urls: good,
			faults: []string{"line 3: ", "line 4: ", "line 5: the line is longer than", "line 7: "},
		},
		"IndexNow": {
			list: `{"host": "a.example", "key": "k", "keyLocation": "https://a.example/k.txt", "urlList": ["http://a.example/1", "http://a.example/2"]}`, urls: good,
		},
		"its host at the end": {list: `{"urlList":["http://a.example/1","http://a.example/2"],"more":{"x":[1]},"host":"A.EXAMPLE"}`, urls: good},
		"a host with a port":  {list: `{"host":"a.example:80","urlList":["http://a.example/1"]} {"host":"a.example:8080","urlList":["http://a.example:8080/1"]}`, urls: []string{good[0], "http://a.example:8080/1"}},
		"a host beyond ASCII": {list: `{"host":"bücher.example","urlList":["http://bücher.example/1"]}`, urls: []string{"http://xn--bcher-kva.example/1"}},
		"bodies": {
			list: "\n{\"host\":\"a.example\",\n\"urlList\":[\n\"http://a.example/1\",\n\"no url\",\n7,\n\"\"]}\n{\"host\":\"b.example\",\"urlList\":[\n\"http://a.example/2\", \"http://b.example/2\"]}",
			urls: []string{good[0], "http://b.example/2"}, faults: []string{"line 5: ", "line 6: want a URL", "line 7: want a URL", `line 9: it is not of the host "b.example"`},
		},
		"no host":           {list: `{"urlList":["http://a.example/1"]}`, err: "line 1: a body without \"host\""},
		"a body of nothing": {list: `{} {"host":"a.example"}`},
		"cut off":           {list: "{\"host\":\"a.example\",\"urlList\":[\n\"http://a.example/1\",\n\"http://a.exa", urls: good[:1], err: "line 2: unexpected EOF"},
		"other JSON":        {list: `{"host":"a.example","urlList":"http://a.example/1"}`, err: `line 1: want "["`},
		"text behind JSON":  {list: "{\"host\":\"a.example\",\"urlList\":[\"http://a.example/1\"]}\nhttp://a.example/2", urls: good[:1], err: "line 1: invalid character"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, slow := range []bool{false, true} {
				f := open(t, frontier.Options{})
				var in io.Reader = strings.NewReader(x.list)
				if slow {
					in = iotest.OneByteReader(in)
				}
				r, err := Add(t.Context(), f, in, Options{})
				if x.err == "" {
					require.NoError(t, err)
				} else {
					require.ErrorContains(t, err, x.err)
				}
				assert.ElementsMatch(t, x.urls, waiting(t, f))
				assert.EqualValues(t, len(x.urls), r.New)
				assert.EqualValues(t, len(x.faults), r.Wrong)
				assert.Equal(t, r.URLs, r.New+r.Wrong)
				require.Len(t, r.Faults, len(x.faults))
				for i, want := range x.faults {
					assert.Contains(t, r.Faults[i].Error(), want)
				}
			}
		})
	}
}

// Each URL of a list has one result, and all except the last are reported by line.
func TestFatesOfURLs(t *testing.T) {
	f := open(t, frontier.Options{})
	_, err := f.Add(t.Context(), frontier.Entry{URL: "http://a.example/known", NotBefore: time.Now().Add(time.Hour)})
	require.NoError(t, err)
	r, err := Add(t.Context(), f, strings.NewReader("http://a.example/known\nhttp://a.example/new\nhttp://b.example/\nno url\nhttp://me:hunter2@b.example/2\n"), Options{
		Wanted: func(e frontier.Entry) error {
			if strings.Contains(e.URL, "b.example") {
				return errors.New("not in scope")
			}
			return nil
		},
	})
	require.NoError(t, err)
	assert.Equal(t, []int64{5, 1, 1, 2, 1, 0}, []int64{r.URLs, r.New, r.Known, r.Unwanted, r.Wrong, r.Unheard})
	require.Len(t, r.Faults, 3)
	assert.Equal(t, []int{4, 3, 5}, []int{r.Faults[0].Line, r.Faults[1].Line, r.Faults[2].Line})
	assert.NotContains(t, fmt.Sprint(r.Faults), "hunter2")
}

// Of many faults the first are reported, all are counted, and valid URLs are added.
func TestManyFaults(t *testing.T) {
	f := open(t, frontier.Options{})
	var b bytes.Buffer
	for i := range 5000 {
		fmt.Fprintf(&b, "http://a.example/%d\nno url\n", i)
	}
	r, err := Add(t.Context(), f, &b, Options{})
	require.NoError(t, err)
	assert.Equal(t, []int64{10_000, 5000, 5000}, []int64{r.URLs, r.New, r.Wrong})
	require.Len(t, r.Faults, 20)
	assert.Equal(t, 40, r.Faults[19].Line)
	assert.EqualValues(t, 5000, f.Stats().Waiting)
}

// Hints for which there is no room are reported.
func TestTooManyHints(t *testing.T) {
	f := open(t, frontier.Options{DeferHints: true, MemoryBudget: 16 << 20})
	var entries []frontier.Entry
	var b bytes.Buffer
	for i := range 3000 {
		u := fmt.Sprintf("http://a.example/%d", i)
		entries = append(entries, frontier.Entry{URL: u, NotBefore: time.Now().Add(time.Hour)})
		fmt.Fprintln(&b, u)
	}
	_, err := f.Add(t.Context(), entries...)
	require.NoError(t, err)
	r, err := Add(t.Context(), f, &b, Options{})
	require.NoError(t, err)
	require.Positive(t, r.Unheard)
	assert.Equal(t, []int64{3000, 3000, 0}, []int64{r.URLs, r.Known + r.Unheard, r.New + r.Wrong})
	assert.Equal(t, int(r.Known)+1, r.Faults[0].Line)
	assert.Equal(t, frontier.ErrHints.Error(), r.Faults[0].Reason)
}

// A body that does not end is refused before it fills the memory.
func TestEndlessBody(t *testing.T) {
	in := io.MultiReader(strings.NewReader(`{"host":"a.example","urlList":["http://a.example/1","`), endless{})
	var got []string
	for x, err := range read(in, 1<<16) {
		if got = append(got, x.url); x.url == "" {
			require.ErrorIs(t, err, errLarge)
		}
	}
	assert.Equal(t, []string{"http://a.example/1", ""}, got)
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// What was read before the reader failed, or the frontier was closed, is counted.
func TestListThatBreaksOff(t *testing.T) {
	f := open(t, frontier.Options{})
	broken := errors.New("broken")
	r, err := Add(t.Context(), f, io.MultiReader(strings.NewReader("http://a.example/1\nhttp://a.exa"), iotest.ErrReader(broken)), Options{})
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, "line 2")
	assert.EqualValues(t, 1, r.New)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err = Add(ctx, f, strings.NewReader("http://a.example/3\n"), Options{})
	require.ErrorIs(t, err, context.Canceled)
	assert.Zero(t, r)
}

// A list without a URL asks nothing of a frontier, not even of one that accepts nothing more.
func TestNothingForAClosedFrontier(t *testing.T) {
	f, err := frontier.Open(t.Context(), frontier.Options{})
	require.NoError(t, err)
	require.NoError(t, f.Close())
	for _, list := range []string{"", "no url\n"} {
		r, err := Add(t.Context(), f, strings.NewReader(list), Options{})
		require.NoError(t, err)
		assert.Zero(t, r.Known+r.New)
	}
	_, err = Add(t.Context(), f, strings.NewReader("http://a.example/"), Options{})
	assert.ErrorIs(t, err, frontier.ErrClosed)
	assert.ErrorContains(t, err, "line 1")
}
