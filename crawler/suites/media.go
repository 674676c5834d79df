// This file runs suites about media types: mime*.json, generated-mime*.json and content*.json.

package main

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/seed-7440039f/frontier/internal/media"
)

type mimeCase struct{ Input, Output, Encoding string }

// runMIMETypes reads single media types: output is null if there is none, and encoding what its charset names.
func runMIMETypes(r *report, c mimeCase) error {
	mediaCase(r, fmt.Sprintf("%q", c.Input), media.Parse(field(c.Input)), c.Output, c.Encoding)
	return nil
}

type contentCase struct {
	Input              []string
	MIMEType, Encoding string
}

// runContentTypes reads all fields of an answer.
func runContentTypes(r *report, c contentCase) error {
	h := http.Header{"Content-Type": c.Input}
	mediaCase(r, fmt.Sprintf("%q", c.Input), media.Of(h), c.MIMEType, c.Encoding)
	return nil
}

// field returns a field whose bytes are the characters of s.
func field(s string) string {
	var b []byte
	for _, c := range s {
		b = append(b, byte(min(c, 0xff)))
	}
	return string(b)
}

// mediaCase compares what a crawler uses of a type: of the parameters only charset.
func mediaCase(r *report, id string, got media.Type, want, encoding string) {
	essence, _, _ := strings.Cut(want, ";")
	e, _ := media.Lookup(got.Charset)
	r.expect(id, essence+" "+strings.ToLower(encoding), got.Essence+" "+e.Name)
}
