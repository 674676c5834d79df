// This test reads odd answers with this package and with curl, and says who is right where they differ:
//
//	go test ./crawler/fetch -run TestOddAnswersAgainstCurl -v -heads 10000 -heads.seed 2

package fetch

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	oddHeads = flag.Int("heads", 300, "odd answers to read")
	oddSeed  = flag.Uint64("heads.seed", 1, "what the odd answers are made of")
)

// oddity is one thing that may be odd in an answer.
type oddity struct {
	name string
	text string
	// verdict says who is right if this package reads what curl refuses (ours), or the other way round
	// (theirs), or if the two read something else (other); empty: they agree.
	ours, theirs, other string
}

const (
	browsers = "we: browsers read it"
	noChunks = "we: browsers ignore chunks in HTTP/1.0"
	whole    = "we: the body is whole, as its last chunk says"
)

var (
	oddStatus = []oddity{
		{name: "no reason", text: "HTTP/1.1 200"},
		{name: "no version", text: "HTTP 200 OK", ours: browsers},
		{name: "old", text: "HTTP/1.0 200 OK", ours: noChunks, theirs: noChunks, other: noChunks},
		{name: "odd version", text: "HTTP/1.7 200 OK", ours: browsers},
		{name: "next version", text: "HTTP/2 200 OK"},
		{name: "lower case", text: "http/1.1 200 OK", ours: browsers},
		{name: "wide", text: "HTTP/1.1   200   OK"},
		{name: "tabs", text: "HTTP/1.1\t200\tOK", ours: browsers},
		{name: "no status", text: "HTTP/1.1 OK", ours: browsers},
		{name: "glued", text: "HTTP/1.1 200OK", ours: browsers},
		{name: "four digits", text: "HTTP/1.1 2000 OK"},
		{name: "mark before it", text: "\xef\xbb\xbfHTTP/1.1 200 OK", ours: browsers},
		{name: "line before it", text: "\r\nHTTP/1.1 200 OK", ours: browsers},
		{name: "another protocol", text: "ICY 200 OK"},
		{name: "control in the reason", text: "HTTP/1.1 200 O\x01K"},
	}
	oddFields = []oddity{
		{name: "no colon", text: "Content-Disposition = inline", ours: browsers},
		{name: "no name", text: ": x"},
		{name: "blank in a name", text: "A B: x"},
		{name: "blank before a colon", text: "A : x"},
		{name: "not ASCII in a name", text: "\xe4: x"},
		{name: "control in a value", text: "A: a\x01b"},
		{name: "DEL in a value", text: "A: a\x7fb"},
		{name: "CR in a value", text: "A: a\rb"},
		{name: "NUL in a value", text: "A: a\x00b"},
		{name: "folded", text: "A: b\r\n c"},
		{name: "blanks only", text: "A: b\r\n  \t"},
		{name: "long", text: "A: " + strings.Repeat("x", 9000)},
		{name: "not ASCII in a value", text: "A: \xe4\xff"},
	}
	// framings are given with %d for the length of the body, and a body for which "chunk" stands.
	oddFraming = []oddity{
		{name: "twice the same", text: "Content-Length: %d\r\nContent-Length: %d"},
		{name: "list", text: "Content-Length: %d, %d", ours: browsers},
		{name: "sign", text: "Content-Length: +%d", ours: "we: the sign changes nothing"},
		{name: "unit", text: "Content-Length: %d bytes"},
		{name: "minus", text: "Content-Length: -%d", ours: "we: browsers read to the end of the connection"},
		{name: "no number", text: "Content-Length: x%d", ours: "we: browsers read to the end of the connection"},
		{name: "empty", text: "Content-Length:", ours: "we: browsers read to the end of the connection"},
		{name: "differs", text: "Content-Length: %d\r\nContent-Length: 1", other: "we: an error, by RFC 9112 section 6.3 and browsers", theirs: "we: an error, by RFC 9112 section 6.3 and browsers"},
		{name: "none", text: "X: y"},
		{name: "identity", text: "Transfer-Encoding: identity\r\nContent-Length: %d"},
		{name: "chunk twice", text: "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", ours: browsers},
		{name: "chunk list", text: "Transfer-Encoding: chunked, chunked", ours: browsers},
		{name: "chunk and length", text: "Transfer-Encoding: chunked\r\nContent-Length: %d"},
		{name: "length and chunk", text: "Content-Length: 1\r\nTransfer-Encoding: chunked"},
		{name: "chunk in capitals", text: "transfer-encoding: CHUNKED"},
		{name: "chunk after identity", text: "Transfer-Encoding: identity, chunked"},
	}
	oddChunks = []oddity{
		{name: "LF", text: "%x\n%s\n0\n\n"},
		{name: "blanks", text: "%x  \r\n%s\r\n0  \r\n\r\n"},
		{name: "blanks before", text: "  %x\r\n%s\r\n0\r\n\r\n", ours: "we: the size is clear"},
		{name: "extension", text: "%x;a=b\r\n%s\r\n0;c\r\n\r\n"},
		{name: "zeros", text: "0000%x\r\n%s\r\n000\r\n\r\n"},
		{name: "trailer", text: "%x\r\n%s\r\n0\r\nA: b\r\nbad\r\n\r\n", ours: whole},
		{name: "no end", text: "%x\r\n%s\r\n0\r\n", ours: whole},
		{name: "no last", text: "%x\r\n%s\r\n"},
		{name: "no size", text: "\r\n%x\r\n%s\r\n0\r\n\r\n"},
		{name: "prefix", text: "0x%x\r\n%s\r\n0\r\n\r\n"},
		{name: "glued", text: "%x\r\n%s0\r\n\r\n"},
	}
)

// makeOdd makes an answer with one to three oddities.
func makeOdd(r *rand.Rand) (answer string, of []oddity) {
	body := strings.Repeat("<p>a page</p>", 1+r.IntN(3))
	pick := func(from []oddity, share float64, usual string) string {
		if r.Float64() > share {
			return usual
		}
		o := from[r.IntN(len(from))]
		of = append(of, o)
		return o.text
	}
	status := pick(oddStatus, 0.3, "HTTP/1.1 200 OK")
	fields := []string{"Content-Type: text/html"}
	for range 1 + r.IntN(2) {
		fields = append(fields, pick(oddFields, 0.4, "X-Y: z"))
	}
	framing := pick(oddFraming, 0.4, []string{"Content-Length: %d", "Transfer-Encoding: chunked"}[r.IntN(2)])
	if strings.Contains(strings.ToLower(framing), "chunked") {
		body = strings.NewReplacer("%x", strconv.FormatInt(int64(len(body)), 16), "%s", body).Replace(pick(oddChunks, 0.5, "%x\r\n%s\r\n0\r\n\r\n"))
	}
	fields = append(fields, strings.ReplaceAll(framing, "%d", strconv.Itoa(len(body))))
	r.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
	end := []string{"\r\n", "\r\n", "\r\n", "\n"}[r.IntN(4)]
	return status + end + strings.Join(fields, end) + end + end + body, of
}

// readByCurl returns for each of n paths whether curl reads an answer of status 200, and its body.
func readByCurl(t *testing.T, addr string, n int) (ok []bool, bodies []string) {
	dir := t.TempDir()
	for len(ok) < n { // some errors end curl
		var config strings.Builder
		for i := len(ok); i < n; i++ {
			fmt.Fprintf(&config, "url=http://%s/%d\noutput=%s\n", addr, i, filepath.Join(dir, strconv.Itoa(i)))
		}
		cmd := exec.Command("curl", "-q", "-s", "--http1.1", "--noproxy", "*", "--max-time", "20", "-w", "%{exitcode} %{http_code}\n", "-K", "-")
		cmd.Stdin = strings.NewReader(config.String())
		out, _ := cmd.Output() // its error concerns the last answer
		require.NotEmpty(t, out)
		for l := range strings.Lines(string(out)) {
			b, _ := os.ReadFile(filepath.Join(dir, strconv.Itoa(len(ok)))) // no file: no body
			ok, bodies = append(ok, l == "0 200\n"), append(bodies, string(b))
		}
	}
	return ok, bodies
}

func TestOddAnswersAgainstCurl(t *testing.T) {
	version, err := exec.Command("curl", "--version").Output()
	if err != nil {
		t.Skip("curl is not here")
	}
	judged := strings.HasPrefix(string(version), "curl 7.88.") // others may differ in more
	r := rand.New(rand.NewPCG(*oddSeed, 0))
	answers, of := make([]string, *oddHeads), make([][]oddity, *oddHeads)
	for i := range answers {
		answers[i], of[i] = makeOdd(r)
	}
	addr := byPath(t, func(path string) string {
		i, _ := strconv.Atoi(strings.TrimPrefix(path, "/"))
		return answers[i]
	})
	theirs, bodies := readByCurl(t, addr, len(answers))
	f := newFetcher(t, Options{NoKeepAlive: true})
	differ := map[string]int{}
	for i, answer := range answers {
		res, err := get(t, f, "http://"+addr+"/"+strconv.Itoa(i))
		ours, text := err == nil && res.Status == 200, ""
		if ours {
			text = body(t, res)
		}
		_ = res.Close()
		if ours == theirs[i] && (!ours || text == bodies[i]) {
			continue
		}
		verdicts := []string{}
		for _, o := range of[i] {
			v, who := o.other, "another body"
			if ours && !theirs[i] {
				v, who = o.ours, "we read it"
			} else if !ours {
				v, who = o.theirs, "curl reads it"
			}
			if v != "" {
				verdicts = append(verdicts, who+", "+o.name+": "+v)
			}
		}
		slices.Sort(verdicts)
		switch what := fmt.Sprintf("not judged: %q: we %v %v, curl %v %q", answer, ours, err, theirs[i], bodies[i]); {
		case len(verdicts) > 0:
			differ[verdicts[0]]++
		case judged:
			assert.Fail(t, what)
		default:
			t.Log(what)
		}
	}
	t.Logf("%d answers, seed %d", len(answers), *oddSeed)
	for v, n := range differ {
		t.Logf("%5d  %s", n, v)
	}
}

// byPath serves what answer returns for a path, and closes the connection.
func byPath(t *testing.T, answer func(path string) string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				req, err := http.ReadRequest(bufio.NewReader(c))
				if err == nil {
					_, _ = io.WriteString(c, answer(req.URL.Path))
				}
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	return l.Addr().String()
}
