// Command sites serves three sites on loopback until it is stopped, for a first crawl that affects
// no real site. It writes the configuration of a crawl of them, whose connections all go to it.
//
//	go run ./examples/basic/sites crawl.toml
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/seed-7440039f/frontier/examples/basic/web"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: sites FILE")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, os.Stdout, os.Args[1]); err != nil {
		log.Fatal("sites: ", err)
	}
}

// serve serves until ctx ends.
func serve(ctx context.Context, out io.Writer, file string) error {
	w := web.Start(
		web.Host{Name: "news.example", Pages: 1000},
		web.Host{Name: "shop.example", Pages: 1000, Robots: "User-agent: *\nDisallow: /private/\n"},
		web.Host{Name: "wiki.example", Pages: 1000},
	)
	defer w.Close()
	config := fmt.Sprintf("seeds = ['%s']\nresolve = ['*.example=%s']\nno-groups = true # they have one address\n", strings.Join(w.Seeds(), "', '"), w.Addr())
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return err
	}
	fmt.Fprintf(out, "news.example, shop.example and wiki.example are at %s: %s has the configuration of a crawl\n", w.Addr(), file)
	<-ctx.Done()
	return nil
}
