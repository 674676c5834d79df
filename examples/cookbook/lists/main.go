// Command lists takes over what another crawler had found: from the journal of a
// Heritrix crawl what was found and not fetched yet, with its depth.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/transfer"
)

// journal is a frontier.recover.gz, decompressed: F+ was found, with the path
// that led to it, Fs was fetched.
const journal = `F+ http://a.example/
F+ http://a.example/about L http://a.example/
F+ http://a.example/logo.png E http://a.example/
F+ http://b.example/ LL http://a.example/about
Fs http://a.example/
Fs http://a.example/logo.png
`

// convert writes a line for Import of each URL that was found and not fetched.
// docs/export.md has the other members that such lines may have.
func convert(journal io.Reader, to io.Writer) error {
	var found []string
	depth, fetched := map[string]int{}, map[string]bool{}
	lines := bufio.NewScanner(journal)
	for lines.Scan() {
		switch f := strings.Fields(lines.Text()); {
		case len(f) < 2:
		case f[0] == "F+":
			found = append(found, f[1])
			if len(f) > 2 {
				depth[f[1]] = strings.Count(f[2], "L") // links; an E is an embedded file
			}
		case f[0] == "Fs":
			fetched[f[1]] = true
		}
	}
	e := json.NewEncoder(to)
	for _, u := range found {
		if fetched[u] {
			continue
		}
		if err := e.Encode(map[string]any{"url": u, "depth": depth[u]}); err != nil {
			return err
		}
	}
	return lines.Err()
}

func run(ctx context.Context, out io.Writer) error {
	f, err := frontier.Open(ctx, frontier.Options{})
	if err != nil {
		return err
	}
	defer f.Close()
	r, w := io.Pipe()
	go func() { w.CloseWithError(convert(strings.NewReader(journal), w)) }()
	took, err := transfer.Import(ctx, f, r, transfer.ImportOptions{})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, took.URLs, "URLs")
	for u, err := range inspect.New(f).URLs(ctx, scope.All(), "") {
		if err != nil {
			return err
		}
		fmt.Fprintln(out, u.Priority, u.Entry.URL)
	}
	return nil
}

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}
