package link_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/seed-7440039f/frontier/crawler/link"
)

func ExampleExtract() {
	const doc = `<!doctype html>
<title>News</title>
<base href="/2026/">
<meta name="robots" content="noarchive">
<a href="story.html">A <b>story</b></a>
<a href="https://ad.example/?id=1" rel="sponsored">Buy</a>
<noscript><a href="plain.html">Plain version</a></noscript>
<img src="photo.jpg" alt="A photo">
<a href="mailto:editor@a.example">Write to us</a>`

	page, err := link.Extract(strings.NewReader(doc), "text/html; charset=utf-8", "https://a.example/", link.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(page.Title, page.Base, page.Robots.NoArchive)
	for _, l := range page.Links {
		fmt.Println(l.Kind, l.URL, l.Text, l.NoFollow)
	}
	// Output:
	// News https://a.example/2026/ true
	// anchor https://a.example/2026/story.html A story false
	// anchor https://ad.example/?id=1 Buy true
	// anchor https://a.example/2026/plain.html Plain version false
	// image https://a.example/2026/photo.jpg A photo false
}

// Directives come from headers, too; the stricter wish counts.
func ExampleRobotsTag() {
	header := link.RobotsTag([]string{"noindex", "otherbot: nofollow"}, "examplebot")
	page := link.Directives{NoArchive: true}
	fmt.Printf("%+v\n", page.Merge(header))
	// Output: {NoIndex:true NoFollow:false NoArchive:true}
}
