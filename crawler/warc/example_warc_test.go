package warc_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/seed-7440039f/frontier/crawler/warc"
)

func Example() {
	dir, err := os.MkdirTemp("", "warc")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	w, err := warc.Open(dir, warc.Options{Remember: 1000})
	if err != nil {
		log.Fatal(err)
	}
	for _, url := range []string{"http://a.example/", "http://b.example/"} { // the same page twice
		err := w.WriteExchange(warc.Exchange{
			URL: url, Date: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC),
			RequestHeader: http.Header{"User-Agent": {"mybot/1.0"}},
			Status:        200, Header: http.Header{"Content-Type": {"text/plain"}}, Body: []byte("hello"),
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}

	files, _ := filepath.Glob(filepath.Join(dir, "*.warc.gz"))
	f, err := os.Open(files[0])
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	for rec, err := range warc.NewReader(f).Records() {
		if err != nil {
			log.Fatal(err)
		}
		if rec.Type != warc.Response && rec.Type != warc.Revisit {
			continue
		}
		resp, err := rec.HTTP()
		if err != nil {
			log.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		fmt.Printf("%s %s %d %q [%s]\n", rec.Type, rec.TargetURI, resp.StatusCode, body, rec.Header.Get("WARC-Refers-To-Target-URI"))
	}
	// Output:
	// response http://a.example/ 200 "hello" []
	// revisit http://b.example/ 200 "" [http://a.example/]
}
