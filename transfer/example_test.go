// These examples show how a frontier is moved, and how a list of URLs is read.

package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"strings"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/transfer"
)

// Everything that a frontier holds, as lines, and back.
func ExampleExport() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Add(ctx, frontier.Entry{URL: "http://a.example/"}); err != nil {
		log.Fatal(err)
	}
	if err := f.Pause(scope.Domain("b.example")); err != nil {
		log.Fatal(err)
	}
	var export bytes.Buffer
	if err := transfer.Export(ctx, f, &export, transfer.ExportOptions{}); err != nil {
		log.Fatal(err)
	}
	for line := range strings.Lines(export.String()) {
		if strings.HasPrefix(line, `{"url"`) || strings.HasPrefix(line, `{"rule"`) {
			fmt.Print(line)
		}
	}
	g, err := frontier.Open(ctx, frontier.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer g.Close()
	took, err := transfer.Import(ctx, g, &export, transfer.ImportOptions{})
	fmt.Println(took.URLs, "URL,", took.Rules, "rule,", err)
	// Output:
	// {"rule":"domain","name":"b.example","paused":"on"}
	// {"url":"http://a.example/","priority":8}
	// 1 URL, 1 rule, <nil>
}

// A plain list of URLs is read, too.
func ExampleImport() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	list := strings.NewReader("# seeds\nhttp://a.example/\nno URL\n{\"url\":\"http://b.example/\",\"priority\":3}\n")
	took, err := transfer.Import(ctx, f, list, transfer.ImportOptions{SkipBad: true})
	fmt.Println(took.URLs, "URLs of", took.Lines, "lines")
	if bad, ok := errors.AsType[*transfer.LineError](err); ok {
		fmt.Println("line", bad.Line, bad.Text)
	}
	// Output:
	// 2 URLs of 4 lines
	// line 3 no URL
}
