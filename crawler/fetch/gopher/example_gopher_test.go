package gopher_test

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"net"

	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/crawler/fetch/gopher"
	"github.com/seed-7440039f/frontier/crawler/link"
	"github.com/seed-7440039f/frontier/crawler/urlnorm"
)

// A menu is a page with links.
func Example() {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Panic(err)
	}
	defer server.Close()
	go func() {
		c, err := server.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		selector, _ := bufio.NewReader(c).ReadString('\n')
		fmt.Fprintf(c, "iYou asked for %q\t\t\t0\r\n", selector)
		fmt.Fprint(c, "0About us\t/about\thole.example\t70\r\n1Elsewhere\t\tother.example\t7070\r\n7Search\t/find\thole.example\t70\r\n.\r\n")
	}()

	f, err := gopher.New(fetch.Options{Resolve: map[string]string{"hole.example": server.Addr().String()}})
	if err != nil {
		log.Panic(err)
	}
	res, err := f.Fetch(context.Background(), fetch.Request{URL: "gopher://hole.example/1/docs"})
	if err != nil {
		log.Panic(err)
	}
	defer res.Close()
	o := link.Options{Normalizer: urlnorm.New().Accept("gopher", "70")}
	page, err := link.Extract(res.Body.Reader(), res.Header.Get("Content-Type"), res.URL, o)
	if err != nil {
		log.Panic(err)
	}
	for _, l := range page.Links {
		fmt.Println(l.Text, l.URL)
	}
	// Output:
	// About us gopher://hole.example/0/about
	// Elsewhere gopher://other.example:7070/
}
