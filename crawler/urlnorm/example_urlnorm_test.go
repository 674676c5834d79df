package urlnorm_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/seed-7440039f/frontier/crawler/urlnorm"
)

func Example() {
	n := urlnorm.New()
	for _, raw := range []string{
		"HTTP://Bücher.example:80/a/../%7euser#top",
		"http://user@a.example./?&q=%e2%82%ac",
		"http:\\\\a.example",
		"mailto:somebody@a.example",
	} {
		fmt.Println(n.Normalize(raw))
	}
	// Output:
	// http://xn--bcher-kva.example/~user <nil>
	// http://a.example/?q=%E2%82%AC <nil>
	// http://a.example/ <nil>
	//  scheme cannot be crawled
}

// The links of a page share its base, which is parsed once.
func ExampleNormalizer_Base() {
	base, err := urlnorm.New().Base("https://a.example/news/today?page=2")
	if err != nil {
		log.Fatal(err)
	}
	for _, href := range []string{"story.html", "../about", "//b.example", "?page=3"} {
		u, err := base.Resolve(href)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(u)
	}
	// Output:
	// https://a.example/news/story.html
	// https://a.example/about
	// https://b.example/
	// https://a.example/news/today?page=3
}

// A custom rule is a name and a function.
func ExampleRule() {
	noWWW := urlnorm.Rule{Name: "no-www", Apply: func(u *urlnorm.URL) {
		u.Host = strings.TrimPrefix(u.Host, "www.")
	}}
	n := urlnorm.New(append(urlnorm.Thorough(), noWWW)...)
	fmt.Println(n.Normalize("http://www.a.example/?utm_source=mail&b=2&a=1"))
	// Output: http://a.example/?a=1&b=2 <nil>
}
