// This file handles the control connection: commands, replies, the data connection that they
// arrange, and HTTP's equivalents of refusals.

package ftp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/seed-7440039f/frontier/crawler/fetch"
)

// reply is a server's reply: a code of three digits, and text.
type reply struct {
	code  int
	text  string   // of the last line
	lines []string // of a reply of several lines: those between the first and the last
}

func (r reply) Error() string { return fmt.Sprintf("the server says %d %q", r.code, r.text) }

// Limits of replies; what exceeds them is skipped. All replies together are limited by
// fetch.Options.MaxHeader.
const (
	maxLine  = 2048
	maxLines = 200
)

// errNoFTP reports a server that speaks another protocol.
var errNoFTP = errors.New("the answer is not FTP")

// control is the control connection.
type control struct {
	conn *fetch.Conn
	r    *bufio.Reader
}

// ask sends a command and returns the reply. It is an error if the server closes the session.
func (c *control) ask(command string) (reply, error) {
	if _, err := io.WriteString(c.conn, command+"\r\n"); err != nil {
		return reply{}, err
	}
	r, err := c.reply()
	if err == nil && r.code == 421 {
		err = r
	}
	return r, err
}

// reply reads a reply (RFC 959, section 4.2).
func (c *control) reply() (reply, error) {
	line, err := c.line()
	if err != nil {
		return reply{}, err
	}
	var r reply
	if r.code = code(line); r.code == 0 || len(line) > 3 && line[3] != ' ' && line[3] != '-' {
		return r, errNoFTP
	}
	for several := len(line) > 3 && line[3] == '-'; several; {
		if line, err = c.line(); err != nil {
			return r, err
		}
		if code(line) == r.code && (len(line) == 3 || line[3] == ' ') {
			break
		}
		if len(r.lines) < maxLines {
			r.lines = append(r.lines, line)
		}
	}
	r.text = clean(strings.TrimSpace(line[3:]))
	return r, nil
}

// line reads a line, and skips what is longer than maxLine.
func (c *control) line() (string, error) {
	line, more, err := c.r.ReadLine()
	s := string(line)
	for more && err == nil {
		_, more, err = c.r.ReadLine()
	}
	if err == io.EOF && c.conn.Cut() {
		err = &fetch.Error{Class: fetch.Protocol, Err: errors.New("the server's replies have no end")}
	}
	return s, err
}

// code returns the reply code at the start of a line; 0: none.
func code(line string) int {
	if len(line) < 3 || line[0] < '1' || line[0] > '5' {
		return 0
	}
	n, err := strconv.ParseUint(line[:3], 10, 16)
	if err != nil {
		return 0
	}
	return int(n)
}

// time parses a reply to MDTM (RFC 3659, section 2.3).
func (r reply) time() (time.Time, bool) {
	if r.code != 213 {
		return time.Time{}, false
	}
	return timeOf(r.text)
}

// timeOf reads a time-val, to seconds.
func timeOf(s string) (time.Time, bool) {
	s, _, _ = strings.Cut(s, ".")
	t, err := time.Parse("20060102150405", s)
	return t, err == nil
}

// size parses a reply to SIZE.
func (r reply) size() (int64, bool) {
	n, err := strconv.ParseUint(r.text, 10, 63)
	return int64(n), err == nil && r.code == 213
}

// clean makes server text safe to print on one line of a terminal.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, strings.ToValidUTF8(s, "?"))
}

// leastPort is the lowest port of a data connection; lower ports belong to other services.
const leastPort = 1024

// transfer opens the data connection and sends the command that uses it. The server chooses the
// port, but not the address.
func (s *session) transfer(ctx context.Context, command string) error {
	port, err := s.passive()
	if err != nil {
		return err
	}
	if port < leastPort || port > 1<<16-1 {
		return fmt.Errorf("the server wants a data connection to port %d; want %d to 65535", port, leastPort)
	}
	if s.data, err = s.DialPort(ctx, uint16(port)); err != nil {
		return err
	}
	s.data.Expect(s.MaxBody() + 1)
	said, err := s.control.ask(command)
	if err == nil && said.code/100 != 1 {
		err = said
	}
	return err
}

// passive requests a port: by EPSV (RFC 2428), which returns only a port, or by PASV.
func (s *session) passive() (port int, err error) {
	said, err := s.control.ask("EPSV")
	if err != nil {
		return 0, err
	}
	if said.code == 229 {
		return extendedPort(said.text)
	}
	if said, err = s.control.ask("PASV"); err != nil {
		return 0, err
	}
	if said.code != 227 {
		return 0, said
	}
	return passivePort(said.text)
}

var (
	six      = regexp.MustCompile(`[0-9]{1,3},[0-9]{1,3},[0-9]{1,3},[0-9]{1,3},([0-9]{1,3}),([0-9]{1,3})`)
	errNoWay = errors.New("the server does not say where its data connection is")
)

// passivePort finds the six numbers anywhere in the text (RFC 1123, section 4.1.2.6).
func passivePort(text string) (int, error) {
	m := six.FindStringSubmatch(text)
	if m == nil {
		return 0, errNoWay
	}
	high, _ := strconv.Atoi(m[1])
	low, _ := strconv.Atoi(m[2])
	if high > 255 || low > 255 {
		return 0, errNoWay
	}
	return high<<8 | low, nil
}

// extendedPort reads (|||port|), with any delimiter.
func extendedPort(text string) (int, error) {
	_, text, ok := strings.Cut(text, "(")
	if !ok || len(text) < 5 || text[1] != text[0] || text[2] != text[0] {
		return 0, errNoWay
	}
	number, _, ok := strings.Cut(text[3:], text[:1])
	port, err := strconv.ParseUint(number, 10, 31)
	if !ok || err != nil {
		return 0, errNoWay
	}
	return int(port), nil
}

// whole ends a transfer: any 2yz reply means that it is complete.
func (s *session) whole() error {
	_ = s.data.Close()
	said, err := s.control.reply()
	s.left = err != nil
	if err == nil && said.code/100 != 2 {
		err = &fetch.Error{Class: fetch.Cut, Err: said}
	}
	return err
}

// answer makes an answer of a refusal; other errors remain.
func (s *session) answer(err error) error {
	said, ok := errors.AsType[reply](err)
	if _, classified := errors.AsType[*fetch.Error](err); !ok || classified || status(said) == 0 {
		return err
	}
	switch said.code {
	case 425:
		return &fetch.Error{Class: fetch.Connect, Err: said}
	case 426:
		return &fetch.Error{Class: fetch.Cut, Err: said}
	}
	return s.Answer(status(said), http.Header{"Ftp-Reply": {fmt.Sprintf("%d %s", said.code, said.text)}})
}

// status returns the equivalent HTTP status; 0 for replies that refuse nothing.
func status(r reply) int {
	switch r.code {
	case 120, 421:
		return http.StatusServiceUnavailable
	case 530:
		for _, word := range []string{"too many", "maximum", "limit", "try again", "busy"} {
			if strings.Contains(strings.ToLower(r.text), word) {
				return http.StatusServiceUnavailable
			}
		}
		return http.StatusUnauthorized
	case 332, 532:
		return http.StatusUnauthorized
	case 550, 553:
		return http.StatusNotFound
	case 501, 504:
		return http.StatusBadRequest
	}
	switch r.code / 100 {
	case 4:
		return http.StatusInternalServerError
	case 5:
		return http.StatusForbidden
	}
	return 0
}
