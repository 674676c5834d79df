// This file writes questions and reads answers (RFC 1035, EDNS0 of RFC 6891). What
// a server sends is not believed further than it answers the question.

package dns

import (
	"errors"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	payload  = 1232 // bytes of a UDP answer that pass everywhere (DNS flag day 2020)
	maxChain = 8    // aliases in a row
)

var (
	errNotOurs   = errors.New("not an answer to the question")
	errTruncated = errors.New("answer cut short")
	errAliases   = errors.New("too many aliases")
)

// serverError is an answer in which the server refuses or fails to answer.
type serverError struct{ code dnsmessage.RCode }

func (e serverError) Error() string {
	return "server answers " + strings.TrimPrefix(e.code.String(), "RCode")
}

// reply is the content of an answer.
type reply struct {
	addrs []netip.Addr
	ttl   time.Duration // of the addresses, or of there being none; 0 if it does not say
	alias string        // the name to ask for next, if the server does not say its address
	gone  bool          // the name does not exist
}

// refusesEDNS reports whether an error may come from a server that does not understand EDNS (RFC 6891
// section 7, RFC 2671 section 5.3).
func refusesEDNS(err error) bool {
	e, ok := errors.AsType[serverError](err)
	return ok && (e.code == dnsmessage.RCodeFormatError || e.code == dnsmessage.RCodeNotImplemented || e.code == dnsmessage.RCodeServerFailure)
}

// ask returns the message for a question.
func ask(id uint16, q dnsmessage.Question, edns bool) ([]byte, error) {
	b := dnsmessage.NewBuilder(make([]byte, 0, 512), dnsmessage.Header{ID: id, RecursionDesired: true})
	b.EnableCompression()
	if err := errors.Join(b.StartQuestions(), b.Question(q), b.StartAdditionals()); err != nil {
		return nil, err
	}
	if !edns {
		return b.Finish()
	}
	var h dnsmessage.ResourceHeader
	if err := errors.Join(h.SetEDNS0(payload, dnsmessage.RCodeSuccess, false), b.OPTResource(h, dnsmessage.OPTResource{})); err != nil {
		return nil, err
	}
	return b.Finish()
}

// read parses an answer to q. errNotOurs means that the right one may still come.
func read(msg []byte, id uint16, q dnsmessage.Question) (reply, error) {
	var p dnsmessage.Parser
	h, err := p.Start(msg)
	if err != nil || !h.Response || h.ID != id {
		return reply{}, errNotOurs
	}
	got, err := p.Question()
	if refused := (serverError{h.RCode}); errors.Is(err, dnsmessage.ErrSectionDone) && refusesEDNS(refused) {
		return reply{}, refused // what could not read the question may not repeat it
	}
	if err != nil || got.Type != q.Type || got.Class != q.Class || !strings.EqualFold(got.Name.String(), q.Name.String()) {
		return reply{}, errNotOurs
	}
	if err := p.SkipAllQuestions(); err != nil {
		return reply{}, err
	}
	switch {
	case h.Truncated:
		return reply{}, errTruncated
	case h.RCode != dnsmessage.RCodeSuccess && h.RCode != dnsmessage.RCodeNameError:
		return reply{}, serverError{h.RCode}
	}
	r, err := answers(&p, q)
	if err != nil {
		return reply{}, err
	}
	r.gone = h.RCode == dnsmessage.RCodeNameError
	if len(r.addrs) == 0 {
		ttl, err := negative(&p)
		if err != nil {
			return reply{}, err
		}
		r.ttl = ttl
	}
	return r, nil
}

// answers follows the aliases from the question's name to addresses.
func answers(p *dnsmessage.Parser, q dnsmessage.Question) (reply, error) {
	type alias struct {
		to  string
		ttl uint32
	}
	type found struct {
		addrs []netip.Addr
		ttl   uint32
	}
	aliases, addrs := map[string]alias{}, map[string]found{}
	for {
		h, err := p.AnswerHeader()
		if errors.Is(err, dnsmessage.ErrSectionDone) {
			break
		}
		if err != nil {
			return reply{}, err
		}
		name := key(h.Name)
		var a netip.Addr
		switch {
		case h.Class != q.Class:
			err = p.SkipAnswer()
		case h.Type == dnsmessage.TypeCNAME:
			var r dnsmessage.CNAMEResource
			r, err = p.CNAMEResource()
			aliases[name] = alias{key(r.CNAME), h.TTL}
		case h.Type == dnsmessage.TypeA && q.Type == h.Type:
			var r dnsmessage.AResource
			r, err = p.AResource()
			a = netip.AddrFrom4(r.A)
		case h.Type == dnsmessage.TypeAAAA && q.Type == h.Type:
			var r dnsmessage.AAAAResource
			r, err = p.AAAAResource()
			a = netip.AddrFrom16(r.AAAA)
		default:
			err = p.SkipAnswer()
		}
		if err != nil {
			return reply{}, err
		}
		if a.IsValid() {
			f := addrs[name]
			if len(f.addrs) == 0 || h.TTL < f.ttl {
				f.ttl = h.TTL
			}
			f.addrs = append(f.addrs, a)
			addrs[name] = f
		}
	}
	name, ttl := key(q.Name), uint32(1<<31-1)
	for range maxChain + 1 {
		if f := addrs[name]; len(f.addrs) > 0 {
			return reply{addrs: f.addrs, ttl: min(seconds(ttl), seconds(f.ttl))}, nil
		}
		next, ok := aliases[name]
		if !ok {
			r := reply{}
			if name != key(q.Name) {
				r.alias = name
			}
			return r, nil
		}
		name = next.to
		if seconds(next.ttl) < seconds(ttl) {
			ttl = next.ttl
		}
	}
	return reply{}, errAliases
}

// negative returns how long to cache that a name has no address (RFC 2308 section 5); 0 if the answer
// does not say.
func negative(p *dnsmessage.Parser) (time.Duration, error) {
	for {
		h, err := p.AuthorityHeader()
		if errors.Is(err, dnsmessage.ErrSectionDone) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		if h.Type != dnsmessage.TypeSOA {
			if err := p.SkipAuthority(); err != nil {
				return 0, err
			}
			continue
		}
		soa, err := p.SOAResource()
		if err != nil {
			return 0, err
		}
		return min(seconds(h.TTL), seconds(soa.MinTTL)), nil
	}
}

// seconds reads a TTL; one with the top bit set is 0 (RFC 2181 section 8).
func seconds(ttl uint32) time.Duration {
	if ttl > 1<<31-1 {
		return 0
	}
	return time.Duration(ttl) * time.Second
}

func key(n dnsmessage.Name) string { return strings.ToLower(n.String()) }
