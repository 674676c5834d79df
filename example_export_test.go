// These examples show how a frontier's content leaves it and enters another.

package frontier_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"strings"

	"github.com/seed-7440039f/frontier"
)

// Everything that a frontier holds, as lines, and back.
func ExampleFrontier_Export() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Add(ctx, frontier.Entry{URL: "http://a.example/"}); err != nil {
		log.Fatal(err)
	}
	if err := f.Pause(frontier.Domain("b.example")); err != nil {
		log.Fatal(err)
	}
	var export bytes.Buffer
	if err := f.Export(ctx, &export, frontier.ExportOptions{}); err != nil {
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
	took, err := g.Import(ctx, &export, frontier.ImportOptions{})
	fmt.Println(took.URLs, "URL,", took.Rules, "rule,", err)
	// Output:
	// {"rule":"domain","name":"b.example","paused":"on"}
	// {"url":"http://a.example/","priority":8}
	// 1 URL, 1 rule, <nil>
}

// A plain list of URLs is read, too.
func ExampleFrontier_Import() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	list := strings.NewReader("# seeds\nhttp://a.example/\nno URL\n{\"url\":\"http://b.example/\",\"priority\":3}\n")
	took, err := f.Import(ctx, list, frontier.ImportOptions{SkipBad: true})
	fmt.Println(took.URLs, "URLs of", took.Lines, "lines")
	if bad, ok := errors.AsType[*frontier.LineError](err); ok {
		fmt.Println("line", bad.Line, bad.Text)
	}
	// Output:
	// 2 URLs of 4 lines
	// line 3 no URL
}
