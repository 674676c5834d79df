package ftp_test

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"net"
	"strings"

	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/crawler/fetch/ftp"
	"github.com/seed-7440039f/frontier/crawler/link"
)

// A folder's listing is a page with links.
func Example() {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Panic(err)
	}
	defer server.Close()
	go serve(server)

	f, err := ftp.New(ftp.Options{Options: fetch.Options{Resolve: map[string]string{"files.example": server.Addr().String()}}})
	if err != nil {
		log.Panic(err)
	}
	res, err := f.Fetch(context.Background(), fetch.Request{URL: "ftp://files.example/pub/"})
	if err != nil {
		log.Panic(err)
	}
	defer res.Close()
	page, err := link.Extract(res.Body.Reader(), res.Header.Get("Content-Type"), res.URL, link.Options{})
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(res.Status, page.Title)
	for _, l := range page.Links {
		fmt.Println(l.URL)
	}
	// Output:
	// 200 Index of /pub/
	// ftp://files.example/pub/readme.txt
	// ftp://files.example/pub/old/
}

// serve answers one client, as little as a server can.
func serve(l net.Listener) {
	c, err := l.Accept()
	if err != nil {
		return
	}
	defer c.Close()
	data, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return
	}
	defer data.Close()
	fmt.Fprint(c, "220 ready\r\n")
	for lines := bufio.NewScanner(c); lines.Scan(); {
		switch cmd, _, _ := strings.Cut(lines.Text(), " "); cmd {
		case "USER":
			fmt.Fprint(c, "230 welcome\r\n")
		case "FEAT":
			fmt.Fprint(c, "211-Features\r\n MLST\r\n211 End\r\n")
		case "TYPE", "CWD":
			fmt.Fprint(c, "250 ok\r\n")
		case "EPSV":
			fmt.Fprintf(c, "229 ok (|||%d|)\r\n", data.Addr().(*net.TCPAddr).Port)
		case "MLSD":
			fmt.Fprint(c, "150 here it comes\r\n")
			if d, err := data.Accept(); err == nil {
				fmt.Fprint(d, "type=file;size=6; readme.txt\r\ntype=dir; old\r\n")
				_ = d.Close()
			}
			fmt.Fprint(c, "226 sent\r\n")
		case "QUIT":
			return
		}
	}
}
