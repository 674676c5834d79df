package neardup_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/seed-7440039f/frontier/crawler/neardup"
)

func Example() {
	x, err := neardup.Open("", neardup.Options{}) // in memory; name a folder to keep it
	if err != nil {
		log.Fatal(err)
	}
	defer x.Close()
	text := ""
	for i := range 60 {
		text += fmt.Sprintf("<p>Paragraph %c says that %c comes before %c.</p>\n", 'a'+i%25, 'a'+i%25, 'b'+i%25)
	}
	for _, page := range []struct{ url, body string }{
		{"http://a.example/story", "<nav>a.example</nav>" + text + "<footer>1 November, 17 visitors</footer>"},
		{"http://a.example/story?print", text},
		{"http://b.example/copied", strings.Replace(text, "Paragraph c says", "It is well known", 1) + "<aside>b.example</aside>"},
		{"http://b.example/other", "<p>Nothing of the kind.</p>"},
	} {
		m, err := x.Add(page.url, x.Hasher().HTML([]byte(page.body), "text/html"))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s is %v [%s]\n", page.url, m.Kind, m.URL)
	}
	// Output:
	// http://a.example/story is new []
	// http://a.example/story?print is same text [http://a.example/story]
	// http://b.example/copied is near [http://a.example/story]
	// http://b.example/other is new []
}

// A page that is fetched again changed only if what it says did.
func ExamplePage_Change() {
	h := neardup.NewHasher(neardup.NewKey(), neardup.Options{})
	before := h.HTML([]byte("<p>Closed today.</p><footer>Page made at 10:15</footer>"), "")
	for _, now := range []string{
		"<p>Closed today.</p><footer>Page made at 10:16</footer>",
		"<p>Open today.</p><footer>Page made at 10:17</footer>",
	} {
		p := h.HTML([]byte(now), "")
		fmt.Println(p.Bytes != before.Bytes, p.Change(&before))
	}
	// Output:
	// true 0
	// true 1
}
