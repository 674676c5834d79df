// This file tests what is found: recall and precision by edits, and sketches against
// the true resemblance.

package neardup

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var thresholds = []float64{0.7, 0.8, 0.85, 0.9, 0.95}

// The table of doc.go, through indexes, so that super-shingles count, too. Estimates
// lie around the truth as doc.go says.
func TestEdits(t *testing.T) {
	var table strings.Builder
	fmt.Fprintf(&table, "\n%-32s  true  at 0.70  0.80  0.85  0.90  0.95\n", "")
	h := NewHasher([16]byte{7}, Options{}) // always the same estimates
	indexes := make([]*Index, len(thresholds))
	for i, th := range thresholds {
		indexes[i] = open(t, "", Options{Threshold: th})
		indexes[i].hasher = h // one for all spares hashing
	}
	nearFound, otherFound := make([]float64, len(thresholds)), make([]float64, len(thresholds))
	var nearAll, pairs, bias, spread float64
	for k, e := range edits {
		var sum, n float64
		found := make([]float64, len(thresholds))
		forEdits(t, e, func(before, after []byte) {
			n++
			r := trueResemblance(before, after)
			sum += r
			a, b := h.HTML(before, ""), h.HTML(after, "")
			if se := math.Sqrt(r * (1 - r) / bins); se > 0 {
				d := a.Sketch.Resemblance(&b.Sketch) - r
				pairs, bias, spread = pairs+1, bias+d, spread+d*d/(se*se)
			}
			url := fmt.Sprintf("http://a.example/%v", n)
			for i, x := range indexes {
				_, err := x.Add(url, a)
				require.NoError(t, err)
				m, err := x.Add(fmt.Sprintf("http://b.example/%d/%v", k, n), b)
				require.NoError(t, err)
				if m.Kind.Duplicate() && (e.near || m.URL == url) {
					found[i]++
				}
			}
		})
		fmt.Fprintf(&table, "%-32s  %.2f    ", e.name, sum/n)
		for _, f := range found {
			fmt.Fprintf(&table, " %4.0f ", 100*f/n)
		}
		table.WriteByte('\n')
		for i, f := range found {
			if e.near {
				nearFound[i] += f
			} else if !e.gray {
				otherFound[i] += f
			}
		}
		if e.near {
			nearAll += n
		}
	}
	recall, precision := make([]float64, len(thresholds)), make([]float64, len(thresholds))
	for i := range thresholds {
		recall[i], precision[i] = nearFound[i]/nearAll, nearFound[i]/(nearFound[i]+otherFound[i])
	}
	t.Logf("%s%v articles\nrecall    %.3f\nprecision %.4f", table.String(), nearAll/8, recall, precision)
	t.Logf("estimates: bias %+.4f, spread %.2f of the standard error", bias/pairs, math.Sqrt(spread/pairs))
	assert.GreaterOrEqual(t, recall[2], 0.97)
	assert.GreaterOrEqual(t, precision[2], 0.99)
	assert.Less(t, math.Abs(bias/pairs), 0.01)
	assert.Less(t, math.Sqrt(spread/pairs), 1.2)
}

// Real pages of one site share a template, and are distinguished; those that count as near are.
func TestRealPages(t *testing.T) {
	any := false
	for _, dir := range []string{"git-doc", "debian-policy", "debian-faq", "exim4-doc-html", "python-scrapy-doc", "nodejs-doc"} {
		files := realPages(dir, 20)
		if len(files) < 10 {
			continue
		}
		any = true
		x := open(t, "", Options{})
		var urls = map[string][]byte{}
		dups, mirrored, wrong := 0, 0, 0
		for i, f := range files {
			body, err := os.ReadFile(f)
			require.NoError(t, err)
			url := fmt.Sprintf("http://a.example/%d", i)
			urls[url] = body
			m, err := x.Add(url, x.Hasher().HTML(body, "text/html"))
			require.NoError(t, err)
			if m.Kind.Duplicate() {
				dups++
				if r := trueResemblance(body, urls[m.URL]); r < 0.85-0.12 {
					wrong++
					t.Logf("%s is no near duplicate of %s: %.2f", f, m.URL, r)
				}
			}
			edited := append([]byte("<nav><a href=x>other menu</a> of another site entirely</nav>"), body...)
			m, err = x.Add(fmt.Sprintf("http://b.example/%d", i), x.Hasher().HTML(edited, "text/html"))
			require.NoError(t, err)
			if m.Kind.Duplicate() {
				mirrored++
			}
		}
		t.Logf("%s: %d pages; %d near an earlier one; %d found again with another menu", dir, len(files), dups, mirrored)
		assert.Zero(t, wrong)
		// Of a page that is little but links the menus are its content, too.
		assert.GreaterOrEqual(t, float64(mirrored), 0.95*float64(len(files)), dir)
	}
	if !any {
		t.Skip("none of the packages with pages is installed")
	}
}

func realPages(name string, most int) (files []string) {
	_ = filepath.WalkDir(filepath.Join("/usr/share/doc", name), func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".html") && len(files) < most {
			files = append(files, path)
		}
		return nil
	})
	return files
}

func TestWords(t *testing.T) {
	for in, want := range map[string]string{
		"Hello, World! it's 12:30 on 2024-01-02": "hello world it s 0 0 on 0 0 0",
		"Änderung ÉTÉ café":                      "änderung été café",
		"日本語 text ไทย":                           "日 本 語 text ไ ท ย",
		"v2.10 x86_64 ١٢٣":                       "v0 0 x0 0 0",
		" \xff\xfe a\xffb ":                      "a b",
		strings.Repeat("a", 70) + " b":           strings.Repeat("a", 64) + " b",
	} {
		var got []string
		words([]byte(in), false, func(w []byte) { got = append(got, string(w)) })
		assert.Equal(t, want, strings.Join(got, " "), in)
	}
	var got []string
	words([]byte("v2.10 of 2024"), true, func(w []byte) { got = append(got, string(w)) })
	assert.Equal(t, []string{"v2", "10", "of", "2024"}, got)
}

func TestText(t *testing.T) {
	article := "<p>" + strings.Repeat("What the page says. ", 30) + "</p>"
	text := strings.TrimSpace(strings.Repeat("What the page says. ", 30))
	for name, page := range map[string]string{
		"elements":          "<html><head><title>T</title><script>x()</script></head><body><nav>menu menu</nav>" + article + "<footer>end</footer>",
		"classes":           "<div class='site-Nav'><div>a</div>menu</div>" + article + "<div id=sidebar>side</div>",
		"roles":             "<div role=navigation>menu</div>" + article,
		"links":             "<ul><li><a href=x>one</a><li><a href=y>two</a></ul>" + article,
		"no end of head":    "<head><title>T</title><body>" + article,
		"scripts with tags": "<script>if (a<b) document.write('<p>x</p>')</script>" + article + "<noscript>no</noscript>",
		"nested":            "<nav><nav>a</nav>b</nav>" + article,
		"body with a class": "<body class=nav>" + article,
	} {
		assert.Equal(t, text, strings.TrimSpace(Text([]byte(page), "text/html")), name)
	}
	assert.Equal(t, "one\ntwo\n", Text([]byte("<li><a href=x>one</a><li><a href=y>two</a>"), ""), "a page of links is its links")
	assert.Contains(t, Text([]byte("<nav>a menu that is never closed "+article), ""), "What the page says")
	assert.Contains(t, Text([]byte("<meta charset=iso-8859-1><p>caf\xe9"), ""), "café")
}

func TestShortPagesAreComparedExactly(t *testing.T) {
	h := NewHasher(NewKey(), Options{})
	a, b, c := h.HTML([]byte("<p>not found: 17"), ""), h.HTML([]byte("<p>Not <b>found</b> 18!"), ""), h.HTML([]byte("<p>not found there"), "")
	near, _ := a.Near(&b, 0.9)
	assert.True(t, near)
	assert.NotEqual(t, a.Bytes, b.Bytes)
	near, _ = a.Near(&c, 0.01)
	assert.False(t, near)
	assert.Equal(t, 1.0, a.Change(&c))
	assert.Zero(t, a.Change(&b))
	keep := NewHasher(NewKey(), Options{KeepNumbers: true})
	a, b = keep.HTML([]byte("<p>not found: 17"), ""), keep.HTML([]byte("<p>not found: 18"), "")
	assert.NotEqual(t, a.Text, b.Text)
}

// Options.Threshold decides how many values are a super-shingle.
func TestBands(t *testing.T) {
	for threshold, rows := range map[float64]int{1: 14, 0.95: 14, 0.9: 7, 0.85: 7, 0.8: 6, 0.5: 3, 0.1: 1} {
		assert.Equal(t, rows, bandRows(threshold), threshold)
	}
}

func FuzzHTML(f *testing.F) {
	f.Add([]byte("<p>a<b>b</p><nav>c</nav>"), "text/html")
	f.Add([]byte("<head><script><svg><noscript></a></nav>"), "text/html; charset=shift_jis")
	f.Add([]byte(strings.Repeat("word ", 50)), "")
	h := NewHasher([16]byte{1}, Options{})
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		a, b := h.HTML(body, contentType), h.HTML(body, contentType)
		if a != b || a.Words < 0 || a.Change(&b) != 0 {
			t.Errorf("%+v, then %+v", a, b)
		}
	})
}

func BenchmarkHTML(b *testing.B) {
	h := NewHasher(NewKey(), Options{})
	page := article{"x", []string{strings.Repeat("A sentence has several words, some of them longer than others. ", 1000)}}.page("alpha", 1)
	b.SetBytes(int64(len(page)))
	b.ReportAllocs()
	for b.Loop() {
		h.HTML(page, "text/html; charset=utf-8")
	}
}
