package robots_test

import (
	"fmt"

	"github.com/seed-7440039f/frontier/crawler/robots"
)

func Example() {
	body := []byte(`
User-agent: *
Disallow: /

User-agent: examplebot
Disallow: /private/
Allow: /private/press/
Crawl-delay: 2.5

Sitemap: https://a.example/sitemap.xml
`)
	file := robots.FromStatus(200, body)
	rules := file.Group("examplebot/1.0 (+https://bot.example)")
	for _, u := range []string{
		"https://a.example/",
		"https://a.example/private/diary",
		"https://a.example/private/press/2026",
	} {
		fmt.Println(u, rules.Allowed(u))
	}
	delay, _ := rules.CrawlDelay()
	fmt.Println(delay, file.Sitemaps())
	// Output:
	// https://a.example/ true
	// https://a.example/private/diary false
	// https://a.example/private/press/2026 true
	// 2.5s [https://a.example/sitemap.xml]
}

// A log line should say which line of the file forbade a URL.
func ExampleRules_Decide() {
	rules := robots.Parse([]byte("User-agent: *\nDisallow: /*.pdf$\n")).Group("examplebot")
	d := rules.Decide("https://a.example/paper.pdf")
	fmt.Printf("allowed %v by line %d: %s\n", d.Allowed, d.Line, d.Pattern)
	// Output: allowed false by line 2: /*.pdf$
}
