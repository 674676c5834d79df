// This file performs one fetch from login to the last reply.

package ftp

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier/crawler/fetch"
)

// Options configure a Fetcher. The zero value works.
type Options struct {
	// Options are limits, addresses and where bodies are stored. See fetch.NewModule for those
	// without effect; Proxy must be nil.
	fetch.Options
	// User and Password are used for all servers, so they are meant for an intranet. Empty means
	// anonymous, and "anonymous@"; servers prefer an e-mail address as password (RFC 1635).
	User, Password string
}

// Fetcher gets files and listings. It is safe for concurrent use.
type Fetcher struct {
	*fetch.Module
	user, password string
}

// New returns a Fetcher, or an error that names every option out of range.
func New(o Options) (*Fetcher, error) {
	f := &Fetcher{user: o.User, password: o.Password}
	f.user = cmp.Or(f.user, "anonymous")
	f.password = cmp.Or(f.password, "anonymous@")
	var err error
	if strings.ContainsAny(f.user+f.password, "\r\n\x00") {
		err = errors.New("ftp: options: User and Password have line ends; want none")
	}
	m, faults := fetch.NewModule("ftp", "21", o.Options, f.speak)
	if err = errors.Join(faults, err); err != nil {
		return nil, err
	}
	f.Module = m
	return f, nil
}

// session is one contact.
type session struct {
	*fetch.Contact
	control control
	data    *fetch.Conn
	path    string // as sent to the server; empty means the folder after login
	folder  bool
	knows   map[string]bool // the server's features (RFC 2389)
	left    bool            // a transfer was broken off: the connections are closed without a word
}

// speak implements FTP for fetch.Module.
func (f *Fetcher) speak(ctx context.Context, c *fetch.Contact) error {
	s := &session{Contact: c}
	if err := s.readPath(); err != nil {
		return &fetch.Error{Class: fetch.BadURL, Err: err}
	}
	c.Result.Proto = "FTP"
	conn, err := c.Dial(ctx)
	if err != nil {
		return err
	}
	s.control = control{conn, bufio.NewReaderSize(conn, maxLine)}
	err = s.login(f)
	switch {
	case err != nil:
	case s.folder:
		err = s.list(ctx)
	default:
		err = s.file(ctx)
	}
	if !s.left {
		_, _ = io.WriteString(s.control.conn, "QUIT\r\n") // nothing waits for the answer
	}
	return s.answer(err)
}

// readPath reads the path of the URL.
func (s *session) readPath() error {
	p, err := url.PathUnescape(strings.TrimPrefix(s.Path, "/"))
	if err != nil {
		return err
	}
	p, kind := cutType(p)
	if strings.ContainsAny(p, "\r\n\x00") {
		return errors.New("a line end in the path")
	}
	s.path = p
	s.folder = kind|0x20 == 'd' || p == "" || strings.HasSuffix(p, "/")
	return nil
}

// cutType cuts the ;type=x off an URL or its path (RFC 1738, section 3.2.2).
func cutType(s string) (rest string, kind byte) {
	if i := len(s) - len(";type=x"); i >= 0 && strings.EqualFold(s[i:len(s)-1], ";type=") {
		return s[:i], s[len(s)-1]
	}
	return s, 0
}

// login greets the server.
func (s *session) login(f *Fetcher) error {
	said, err := s.control.reply()
	if err == nil && said.code/100 == 2 {
		said, err = s.control.ask("USER " + f.user)
	}
	if err == nil && said.code/100 == 3 {
		said, err = s.control.ask("PASS " + f.password)
	}
	if err != nil {
		return err
	}
	if said.code/100 != 2 {
		return said
	}
	if said, err = s.control.ask("FEAT"); err != nil { // a server without FEAT has no features
		return err
	}
	s.knows = map[string]bool{}
	for _, line := range said.lines {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		s.knows[strings.ToUpper(name)] = said.code/100 == 2
	}
	if s.knows["UTF8"] {
		if _, err = s.control.ask("OPTS UTF8 ON"); err != nil {
			return err
		}
	}
	if said, err = s.control.ask("TYPE I"); err == nil && said.code/100 != 2 {
		err = said
	}
	return err
}

// file gets a file, or finds out that it is a folder.
func (s *session) file(ctx context.Context) error {
	h := http.Header{}
	if t, ok := contentTypes[strings.ToLower(strings.TrimPrefix(path.Ext(s.path), "."))]; ok {
		h.Set("Content-Type", t)
	}
	said, err := s.control.ask("MDTM " + s.path) // servers without FEAT may support it
	if err != nil {
		return err
	}
	if t, ok := said.time(); ok {
		h.Set("Last-Modified", t.Format(http.TimeFormat))
		since, err := http.ParseTime(s.Request.Header.Get("If-Modified-Since"))
		if err == nil && !t.After(since) {
			return s.Answer(http.StatusNotModified, h)
		}
	}
	if said, err = s.control.ask("SIZE " + s.path); err != nil {
		return err
	}
	size, known := said.size()
	if known {
		h.Set("Content-Length", strconv.FormatInt(size, 10))
	}
	err = s.transfer(ctx, "RETR "+s.path)
	if said, ok := errors.AsType[reply](err); ok && said.code == 550 && s.isFolder() {
		to, _, _ := strings.Cut(s.Request.URL, "#")
		to, _ = cutType(to)
		return s.Answer(http.StatusMovedPermanently, http.Header{"Location": {to + "/"}})
	}
	if err != nil {
		return err
	}
	s.left = true
	if err := s.Answer(http.StatusOK, h); err != nil {
		return err
	}
	if err := s.ReadBody(s.data, nil); err != nil || s.Result.Truncated {
		return err
	}
	if err := s.whole(); err != nil {
		return err
	}
	if got := s.Result.Body.Size(); known && got < size {
		return &fetch.Error{Class: fetch.Cut, Err: fmt.Errorf("%d bytes came of %d", got, size)}
	}
	return nil
}

// isFolder reports whether a path that is not a file is a folder.
func (s *session) isFolder() bool {
	said, err := s.control.ask("CWD " + s.path)
	return err == nil && said.code/100 == 2
}

// list makes a page of a folder's listing.
func (s *session) list(ctx context.Context) error {
	if s.path != "" {
		dir := s.path
		if len(dir) > 1 {
			dir = strings.TrimSuffix(dir, "/")
		}
		said, err := s.control.ask("CWD " + dir)
		if err != nil {
			return err
		}
		if said.code/100 != 2 {
			return said
		}
	}
	cmd := "LIST"
	if s.knows["MLST"] || s.knows["MLSD"] { // FEAT lists it as MLST (RFC 3659, section 7.8)
		cmd = "MLSD"
	}
	if err := s.transfer(ctx, cmd); err != nil {
		return err
	}
	s.left = true
	if err := s.Answer(http.StatusOK, http.Header{"Content-Type": {pageType}}); err != nil {
		return err
	}
	p := newPage(s.path, s.MaxBody())
	began := time.Now()
	err := p.read(s.data)
	s.Result.Timing.Body = time.Since(began)
	s.Result.Bytes = s.data.Received()
	s.Result.Truncated = s.data.Cut() || p.full
	if err == nil && !s.Result.Truncated {
		err = s.whole()
	}
	return errors.Join(err, s.MakeBody(p.write))
}
