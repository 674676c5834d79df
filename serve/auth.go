// This file decides which requests a client may make.

package serve

import (
	"bufio"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/seed-7440039f/frontier/console"
)

// Role is a client's level of permission. Each role includes the lower ones.
type Role uint8

const (
	Anonymous Role = iota // nothing
	Look                  // read
	Crawl                 // add URLs, take leases and end them
	Operate               // change rules and crawls, delete, export and import
)

var roleNames = [...]string{"anonymous", "look", "crawl", "operate"}

// String returns the role's name in lower case.
func (r Role) String() string {
	if int(r) < len(roleNames) {
		return roleNames[r]
	}
	return "invalid role"
}

// ParseRole parses a role as String writes it: look, crawl or operate.
func ParseRole(s string) (Role, error) {
	if i := slices.Index(roleNames[:], s); i > 0 {
		return Role(i), nil
	}
	return Anonymous, fmt.Errorf("there is no role %.40q; want look, crawl or operate", s)
}

// Tokens are the secrets that clients may present. Only their hashes are kept.
type Tokens struct{ all []token }

type token struct {
	sum  [sha256.Size]byte
	role Role
	name string
}

// ReadTokens reads one token per line: its role, its SHA-256 in hexadecimal, and a name for the log. It
// skips empty lines and lines that begin with #.
func ReadTokens(r io.Reader) (*Tokens, error) {
	var t Tokens
	var errs []error
	in := bufio.NewScanner(r)
	for n := 1; in.Scan(); n++ {
		fields := strings.Fields(in.Text())
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) != 3 {
			errs = append(errs, fmt.Errorf("serve: tokens: line %d: want a role, the SHA-256 of a token, and a name", n))
			continue
		}
		role, err := ParseRole(fields[0])
		sum, bad := hex.DecodeString(fields[1])
		switch empty := sha256.Sum256(nil); {
		case bad != nil || len(sum) != sha256.Size:
			bad = errors.New("it has no SHA-256 of a token: want 64 hexadecimal digits")
		case [sha256.Size]byte(sum) == empty:
			bad = errors.New("it has the SHA-256 of an empty token")
		}
		if slices.ContainsFunc(t.all, func(x token) bool { return bad == nil && x.sum == [sha256.Size]byte(sum) }) {
			bad = errors.New("this token is in a line before")
		}
		if err = errors.Join(err, bad); err != nil {
			errs = append(errs, fmt.Errorf("serve: tokens: line %d: %w", n, err))
			continue
		}
		t.all = append(t.all, token{[sha256.Size]byte(sum), role, fields[2]})
	}
	if errs = append(errs, in.Err()); errors.Join(errs...) == nil && len(t.all) == 0 {
		errs = append(errs, errors.New("serve: tokens: the file is empty"))
	}
	return &t, errors.Join(errs...)
}

// Role returns the role and the name of a token. The time it takes depends on neither.
func (t *Tokens) Role(secret string) (role Role, name string) {
	sum := sha256.Sum256([]byte(secret))
	for _, x := range t.all {
		if subtle.ConstantTimeCompare(sum[:], x.sum[:]) == 1 {
			role, name = x.role, x.name
		}
	}
	return role, name
}

// Open reports whether every client may make every request.
func (s *Service) Open() bool { return s.o.Tokens == nil && len(s.o.Certificates) == 0 }

// Role returns a client's role and its name for the log, from its Authorization field (Bearer and a
// token) and the names in its verified certificate; over is nil if its connection is in the clear.
func (s *Service) Role(authorization string, over *tls.ConnectionState) (role Role, who string) {
	if s.Open() {
		return Operate, ""
	}
	for _, name := range certified(over) {
		if r := s.o.Certificates[name]; r > role {
			role, who = r, name
		}
	}
	scheme, secret, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "Bearer") || s.o.Tokens == nil {
		return role, who
	}
	if r, name := s.o.Tokens.Role(secret); r > role {
		return r, name
	}
	return role, who
}

// MayLook reports whether the client of a request may read, for what is answered without a Service.
func (o Options) MayLook(r *http.Request) bool {
	s := &Service{o: o}
	role, _ := s.Role(r.Header.Get("Authorization"), r.TLS)
	return role >= Look && !console.Foreign(r) && (!s.Open() || console.Ours(r.Host, o.Names))
}

// certified returns the names in a client's verified certificate.
func certified(over *tls.ConnectionState) (names []string) {
	if over == nil || len(over.VerifiedChains) == 0 {
		return nil
	}
	c := over.PeerCertificates[0]
	names = append(append(names, c.DNSNames...), c.EmailAddresses...)
	for _, u := range c.URIs {
		names = append(names, u.String())
	}
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}

// missing says which credentials a client without a role lacks.
func (s *Service) missing(r *http.Request) string {
	switch {
	case s.o.Tokens != nil:
		return "a token is missing, or unknown"
	case r.TLS != nil && len(r.TLS.VerifiedChains) > 0:
		return "no role is set for a name in the client's certificate"
	}
	return "a client's certificate is missing"
}
