// This file reads the lines of an export. exportlines.go writes them.

package frontier

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"
	"unicode/utf8"
)

// json does what a line of JSON says.
func (im *importer) json(text []byte) error {
	if !utf8.Valid(text) {
		return errors.New("not UTF-8")
	}
	l := &im.line
	if l.quick(text) {
		return im.urlLine(l)
	}
	*l = exportLine{}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(l); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return errors.New("unexpected end of JSON")
		}
		return err
	}
	if d.InputOffset() != int64(len(text)) {
		return errors.New("more than one JSON value")
	}
	kinds := []struct {
		is bool
		do func(*exportLine) error
	}{
		{l.Frontier != nil, im.headerLine},
		{l.End != nil, im.endLine},
		{l.Settings != nil, im.crawlLine},
		{l.Rule != nil, im.ruleLine},
		{l.Used != nil, im.usedLine},
		{l.Group != nil || l.Group64 != nil, im.groupLine},
		{l.Host != nil || l.Host64 != nil, im.hostLine},
		{l.URL != nil || l.URL64 != nil, im.urlLine},
		{l.Marks != nil, im.marksLine},
	}
	var do func(*exportLine) error
	for _, k := range kinds {
		if k.is && do != nil {
			return errors.New("line of several kinds")
		}
		if k.is {
			do = k.do
		}
	}
	if do == nil {
		return errors.New("line of no kind")
	}
	return do(l)
}

func (im *importer) headerLine(l *exportLine) error {
	if im.done.Lines != 1 {
		return errors.New("header is not the first line")
	}
	if *l.Frontier > exportVersion {
		return &importError{fmt.Errorf("frontier: import: the export has version %d, this program knows %d: %w", *l.Frontier, exportVersion, ErrVersion)}
	}
	if *l.Frontier < 1 {
		return fmt.Errorf("version is %d", *l.Frontier)
	}
	key, err := hex.DecodeString(l.Key)
	if err != nil || len(key) != 16 {
		return errors.New("key: want 32 hexadecimal digits")
	}
	im.header = true
	if im.dry {
		return nil
	}
	if im.foreign, err = im.f.takeKey([16]byte(key)); err == nil {
		err = im.f.importHold(int64(l.Held))
	}
	return failed(err)
}

func (im *importer) endLine(l *exportLine) error {
	switch {
	case !im.header:
		return errors.New("end without a header")
	case *l.End != im.done.Lines-1:
		im.ended = true
		return fmt.Errorf("%d lines come before it; there were %d", im.done.Lines-1, *l.End)
	}
	im.ended = true
	return nil
}

func (im *importer) crawlLine(l *exportLine) error {
	s := CrawlSettings{Weight: int(l.Weight)}
	if lineFloat(s.Weight) != l.Weight || s.Weight < 0 || s.Weight > MaxCrawlWeight {
		return fmt.Errorf("weight is %v; want 1 to %d", l.Weight, MaxCrawlWeight)
	}
	switch l.Paused {
	case "", "off":
	case "on":
		s.Paused = true
	default:
		return fmt.Errorf("paused is %q; want on or off", l.Paused)
	}
	s.Limits = l.Limits.limits()
	if err := s.check(); err != nil || im.dry {
		return err
	}
	im.done.Crawls++
	return failed(im.f.SetCrawl(*l.Settings, s))
}

func (im *importer) ruleLine(l *exportLine) error {
	s, err := l.scope("rule", *l.Rule)
	if err != nil {
		return err
	}
	d, err := l.Delay.policy()
	if err != nil {
		return err
	}
	r := Rule{
		Delay: d, Concurrency: l.Concurrency, Priority: l.Priority,
		Limits: l.Limits.limits(), HostLimits: l.HostLimits.limits(),
	}
	for i, p := range l.Priorities {
		if i >= len(r.Priorities) || p < 0 || p > maxPriorities {
			return fmt.Errorf("priorities are %v; want at most %d of 0 to %d", l.Priorities, len(r.Priorities), maxPriorities)
		}
		r.Priorities[i] = uint8(p)
	}
	if t := l.BlockedUntil.time(); t.After(im.f.opts.Clock.Now()) {
		r.BlockedUntil = t
	}
	switch l.Paused {
	case "":
	case "on":
		r.Paused = On
	case "off":
		r.Paused = Off
	default:
		return fmt.Errorf("paused is %q; want on or off", l.Paused)
	}
	s, err = im.f.spelled(s)
	if err := errors.Join(err, r.check(im.f.opts.Clock.Now()), r.checkPriorities(im.f.opts.Priorities)); err != nil || im.dry {
		return err
	}
	if err := im.f.SetRule(s, r); err != nil {
		return failed(err)
	}
	im.done.Rules++
	return nil
}

// scope is the scope that a line names, whose kind is that.
func (l *exportLine) scope(member, kind string) (Scope, error) {
	if kind == "all" {
		return All(), nil
	}
	name, err := either("name", l.Name, l.Name64)
	if err != nil {
		return All(), err
	}
	s := Host(name)
	switch kind {
	case "host":
	case "domain":
		s = Domain(name)
	default:
		return s, fmt.Errorf("%s is %q; want all, domain or host", member, kind)
	}
	return s, s.check()
}

// usedLine is what was used of the limits of a scope or crawl.
func (im *importer) usedLine(l *exportLine) error {
	state, err := l.Counts.state()
	if err != nil {
		return err
	}
	key := crawlUseKey(l.Crawl)
	if *l.Used != "crawl" {
		s, err := l.scope("used", *l.Used)
		if err != nil {
			return err
		}
		key = rowUse + "r" + s.ruleKey()
	}
	if im.dry {
		return nil
	}
	return failed(im.f.importUsed(key[len(rowUse):], state))
}

func (im *importer) groupLine(l *exportLine) error {
	name, err := either("group", l.Group, l.Group64)
	if err != nil {
		return err
	}
	var s GroupSettings
	s.Concurrency = l.Concurrency
	s.Delay, err = l.Delay.policy()
	if err := errors.Join(checkGroup(name), err, s.check()); err != nil || im.dry {
		return err
	}
	if s != (GroupSettings{}) {
		if err := im.f.SetGroup(name, s); err != nil {
			return failed(err)
		}
	}
	im.done.Groups++
	return failed(im.f.importGroup(&im.pending, name, int64(l.Due)))
}

func (im *importer) hostLine(l *exportLine) error {
	name, err := either("host", l.Host, l.Host64)
	if err != nil {
		return err
	}
	s, err := l.hostState()
	name = im.f.hostSeen(name)
	if err := errors.Join(checkHost(name), err); err != nil || im.dry {
		return err
	}
	im.done.Hosts++
	return failed(im.f.importHost(&im.pending, name, &s))
}

// hostState is what a line of a host says.
func (l *exportLine) hostState() (s hostState, err error) {
	s.due = int64(l.Due)
	clock := slices.Index(whyNames[:], l.Why)
	if clock < 0 {
		return s, fmt.Errorf("why is %q; want one of %q", l.Why, whyNames[1:])
	}
	s.why = why(clock)
	if l.Trouble != nil {
		s.quiet, s.free = int64(l.Trouble.Failed), int64(l.Trouble.Free)
		if s.trouble, err = l.Trouble.state(); err != nil {
			return s, err
		}
	}
	if l.Joined != nil || l.Joined64 != nil {
		if s.group, err = either("joined", l.Joined, l.Joined64); err == nil {
			err = checkGroup(s.group)
			s.assigned = l.Assigned == 1
		}
	}
	if d := time.Duration(l.CrawlDelay); d < 0 || d > maxCrawlDelay {
		err = errors.Join(err, fmt.Errorf("crawlDelay is %v; want 0 to %v", d, maxCrawlDelay))
	}
	used, uerr := l.Counts.state()
	s.used, err = used, errors.Join(err, uerr)
	s.crawlDelay = int32((time.Duration(l.CrawlDelay) + time.Millisecond - 1) / time.Millisecond)
	return s, err
}

func (im *importer) urlLine(l *exportLine) error {
	url, err := either("url", l.URL, l.URL64)
	if err != nil {
		return err
	}
	for _, n := range [...]int{l.Fails, l.Visits, l.Changes} {
		if n < 0 || n > math.MaxInt32 {
			return fmt.Errorf("a count is %d; want 0 to %d", n, math.MaxInt32)
		}
	}
	last, ok := Result(0), l.Last == ""
	for r := Visited; r <= Denied && !ok; r++ {
		last, ok = r, l.Last == r.String()
	}
	if !ok {
		return fmt.Errorf("last is %q; want a result, visited to denied", l.Last)
	}
	var state State
	if n := len(l.State); n != 0 && n != len(state) {
		return fmt.Errorf("state has %d bytes; want %d", n, len(state))
	}
	copy(state[:], l.State)
	e := Entry{URL: url, Depth: l.Depth, Weight: float64(l.Weight), Crawl: l.Crawl, Meta: l.Meta}
	if l.Due != 0 {
		e.NotBefore = l.Due.time()
	}
	return im.url(&e, l.Priority, l.Fails, History{
		Visits: l.Visits, Changes: l.Changes,
		FirstVisit: l.FirstVisit.time(), LastVisit: l.LastVisit.time(),
		LastChange: l.LastChange.time(), LastModified: l.LastModified.time(),
		Last: last, State: state,
	})
}

func (im *importer) marksLine(l *exportLine) error {
	b, err := base64.StdEncoding.DecodeString(*l.Marks)
	if err != nil {
		return err
	}
	switch n := len(b) / len(Mark{}); {
	case !im.header:
		return errors.New("marks without a header that has their key")
	case len(b)%len(Mark{}) != 0:
		return fmt.Errorf("%d bytes of marks; want 12 for each", len(b))
	case im.dry:
		return nil
	case im.foreign || im.f.opts.NoDedup:
		im.done.ForeignMarks += int64(n)
		return nil
	}
	for ; len(b) > 0; b = b[len(Mark{}):] {
		im.marks = append(im.marks, Mark(b[:len(Mark{})]))
	}
	if len(im.marks) >= importMarks {
		return im.flushMarks()
	}
	return nil
}

// failed makes err one that is not the line's fault.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return &importError{err}
}
