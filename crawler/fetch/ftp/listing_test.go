// These tests read listings as servers write them.

package ftp

import (
	"bufio"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/seed-7440039f/frontier/crawler/fetch"
)

func TestLines(t *testing.T) {
	when := time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC)
	for line, want := range map[string]entry{
		"type=file;size=3;modify=20240102030405; a b ": {name: "a b ", size: 3, time: when},
		"Modify=20240102030405.678;Type=DIR; d":        {name: "d", folder: true, size: -1, time: when},
		" name without facts":                          {name: "name without facts", size: -1},
		"type=cdir; /pub":                              {},
		"type=pdir; /":                                 {},
		"type=file; ../x":                              {},
		"type=file;size=-1;modify=x; y":                {name: "y", size: -1},
		"total 12":                                     {},
		"":                                             {},
		"-rw-r--r--   1 ftp      ftp            13 Jan 02 03:04 a -> b":    {name: "a -> b", size: 13},
		"-rw-r--r--   1 0        0            4096 Jan  2  2024  a":        {name: " a", size: 4096},
		"-rw-r--r--+  1 domain users grp 7 Mär 02 2024 a":                  {name: "a", size: 7},
		"-rw-rw-r--   1 ftp ftp 1234 2. Mai 2024 a":                        {name: "a", size: 1234},
		"-rw-r--r--   1 ftp 13 Jan 02 03:04 no group":                      {name: "no group", size: 13},
		"-rw-r--r-- 1 u g 13 2024-01-02 03:04 iso":                         {name: "iso", size: 13},
		"drwxr-xr-x               folder        0 Jan 02 03:04 Nov 4 2024": {name: "Nov 4 2024", folder: true, size: -1},
		"lrwxrwxrwx   1 u g 4 Jan 02 03:04 l -> /etc/x":                    {name: "l", size: -1},
		"crw-rw-rw-   1 root root 1, 3 Jan 02 03:04 null":                  {size: -1},
		"01-02-24  03:04AM                1,234 DOS name.txt":              {name: "DOS name.txt", size: 1234},
		"2024-01-02  03:04       <DIR>          dir":                       {name: "dir", folder: true},
		"+i8388621.48594,m825718503,r,s280,\tdjb.html":                     {name: "djb.html", size: 280},
		"+i8388621.50690,m824255907,/,\t514":                               {name: "514", folder: true, size: -1},
	} {
		got, ok := parseLine(line)
		assert.True(t, ok, line)
		if want.name == "" {
			assert.Empty(t, got.name, line)
			continue
		}
		if want.folder {
			want.size = got.size
		}
		assert.Equal(t, want, got, line)
	}
	for _, line := range []string{"rubbish", "type=file;nothing", "-rw-r--r-- 1 u g", "no=facts name", "+x", "d", "226 Transfer complete"} {
		_, ok := parseLine(line)
		assert.False(t, ok, line)
	}
}

func TestLinesNotUnderstoodAreTold(t *testing.T) {
	p := newPage("x", 1<<20)
	assert.NoError(t, p.read(strings.NewReader("rubbish\ntype=file; a\n"+strings.Repeat("x", 3*maxEntry)+"\ntype=file; b")))
	assert.Equal(t, 2, p.unknown)
	var b strings.Builder
	assert.NoError(t, p.write(&b))
	assert.Contains(t, b.String(), "2 lines not understood")
	assert.Equal(t, 2, strings.Count(b.String(), "<li>"))
}

func FuzzListing(f *testing.F) {
	f.Add("type=file;size=3;modify=20240102030405; a b\r\n-rw-r--r--   1 ftp      ftp            13 Jan 02 03:04 a")
	f.Add("01-02-24  03:04AM       <DIR>          d\n+i8388621.48594,m825718503,r,s280,\tdjb.html")
	f.Fuzz(func(t *testing.T, listing string) {
		p := newPage("/", 1<<12)
		if err := p.read(strings.NewReader(listing)); err != nil {
			t.Error(err)
		}
		var b strings.Builder
		if err := p.write(&b); err != nil || b.Len() > 1<<12+200 {
			t.Errorf("a page of %d bytes, %v", b.Len(), err)
		}
	})
}

func FuzzReply(f *testing.F) {
	f.Add("211-Features:\r\n MDTM\r\n211 End\r\n", "229 ok (|||1|)")
	f.Add("220-x", "227 (1,2,3,4,5,6)")
	f.Fuzz(func(t *testing.T, said, port string) {
		c := control{conn: &fetch.Conn{}, r: bufio.NewReaderSize(strings.NewReader(said), maxLine)}
		if r, err := c.reply(); err == nil && (r.code < 100 || r.code > 599 || len(r.lines) > maxLines) {
			t.Errorf("%q gives %+v", said, r)
		}
		for _, read := range []func(string) (int, error){passivePort, extendedPort} {
			if n, err := read(port); err == nil && n < 0 {
				t.Errorf("%q gives %d", port, n)
			}
		}
	})
}
