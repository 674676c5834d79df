// This file runs suites about media types: mime*.json, generated-mime*.json and content*.json.

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/seed-7440039f/frontier/internal/media"
)

// runMIMETypes reads single media types: output is null if there is none, and encoding what its charset names.
func runMIMETypes(r *report, raw []byte) error {
	var file []json.RawMessage
	if err := json.Unmarshal(raw, &file); err != nil {
		return err
	}
	for _, m := range file {
		if m[0] != '{' { // a comment
			continue
		}
		var c struct{ Input, Output, Encoding string }
		if err := json.Unmarshal(m, &c); err != nil {
			return err
		}
		mediaCase(r, fmt.Sprintf("%q", c.Input), media.Parse(field(c.Input)), c.Output, c.Encoding)
	}
	return nil
}

// runContentTypes reads all fields of an answer.
func runContentTypes(r *report, raw []byte) error {
	var file []struct {
		Input              []string
		MIMEType, Encoding string
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		return err
	}
	for _, c := range file {
		h := http.Header{"Content-Type": c.Input}
		mediaCase(r, fmt.Sprintf("%q", c.Input), media.Of(h), c.MIMEType, c.Encoding)
	}
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
