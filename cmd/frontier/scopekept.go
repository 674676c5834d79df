// This file makes the scope belong to the crawl: a later command in its folder keeps the scope and adds
// its own seeds, unless it sets another.

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"

	"github.com/seed-7440039f/frontier"
)

// keptScope is the scope stored in the folder's settings.
type keptScope struct {
	before *settings // nil: none, or the crawl was resumed with them
	wider  bool      // what the crawl wants has changed
	seeds  []string  // earlier ones; faults of those no longer wanted are not reported

	mu sync.Mutex // held while a host is added
}

// takeScope takes the scope from the folder's settings where this command does not set it. Call it before
// settle.
func (s *settings) takeScope() error {
	dir := s.latest("dir")
	if dir == "" {
		return nil
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil // no crawl; opening it will report that
	}
	old := newSettings()
	err := old.readConfig(filepath.Join(dir, keptConfig))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || len(old.faults) > 0 {
		return errors.Join(fmt.Errorf("%s in %s cannot be read, so its scope is not known", keptConfig, dir), err, old.err())
	}
	old.settle()
	s.kept.before, s.kept.seeds = old, old.texts(seedsKey)
	if s.resumed {
		return nil // it has them already
	}
	for _, name := range []string{"include", "exclude", "max-depth", "max-url"} {
		s.inherit(old, name)
	}
	if s.says("scope-hosts") || s.says("scope-domains") {
		return nil
	}
	for _, name := range []string{"scope-hosts", "scope-domains"} {
		s.inherit(old, name)
	}
	s.add("scope-also", old.texts("scope-also"))
	if old.given("scope-hosts") || old.given("scope-domains") {
		s.add("scope-also", hostsOf(s.texts(seedsKey)))
	} else {
		s.add(seedsKey, old.texts(seedsKey))
		for _, path := range old.texts(seedsFileKey) { // absolute
			if !slices.ContainsFunc(s.texts(seedsFileKey), func(t string) bool { typed, err := filepath.Abs(t); return err == nil && typed == path }) {
				s.add(seedsFileKey, []string{path})
			}
		}
	}
	return nil
}

// latest returns an option's text from the command line, or else from the file.
func (o *options) latest(name string) string {
	if t := o.texts(name); len(t) > 0 {
		return t[len(t)-1]
	}
	return ""
}

// texts returns an option's texts before it is settled.
func (o *options) texts(name string) []string {
	x := o.find(name)
	if len(x.typed) > 0 {
		return x.typed
	}
	var out []string
	for _, t := range x.read {
		out = append(out, t.value)
	}
	return out
}

// says reports whether an option is given, even as an empty list.
func (o *options) says(name string) bool {
	x := o.find(name)
	return len(x.typed) > 0 || x.line > 0
}

// inherit sets an option to its earlier value, unless it is given.
func (o *options) inherit(old *settings, name string) {
	x := o.find(name)
	if o.says(name) || !old.given(name) {
		return
	}
	for _, t := range old.texts(name) {
		x.read = append(x.read, text{value: t})
	}
}

// add adds texts to a list that is not yet settled.
func (o *options) add(name string, more []string) {
	x := o.find(name)
	for _, t := range more {
		switch {
		case slices.Contains(o.texts(name), t):
		case len(x.typed) > 0:
			x.typed = append(x.typed, t)
		default:
			x.read = append(x.read, text{value: t})
		}
	}
}

// hostsOf returns the hosts of valid seeds.
func hostsOf(seeds []string) (hosts []string) {
	s := newSettings()
	for _, seed := range seeds {
		if u, err := s.normalizer().Typed(seed); err == nil {
			if h, err := frontier.HostName(u); err == nil {
				hosts = append(hosts, h)
			}
		}
	}
	return hosts
}

// wanting are the themes of the options that select URLs: if one has changed, parked URLs are judged
// again.
var wanting = []string{whereBegins, whereGoes, whichWanted}

// ownFaults drops faults of earlier seeds.
func (s *settings) ownFaults(bad []*frontier.EntryError) (own []error) {
	for _, e := range bad {
		if !slices.ContainsFunc(s.kept.seeds, func(typed string) bool { u, _ := s.normalizer().Typed(typed); return u == s.seeds[e.Index] }) {
			own = append(own, e)
		}
	}
	return own
}

// judgeWider compares what the crawl wants with what it wanted before.
func (s *settings) judgeWider() {
	if s.kept.before == nil {
		return
	}
	for _, x := range s.all {
		if slices.Contains(wanting, x.theme) || x.Name == "protocols" {
			s.kept.wider = s.kept.wider || !reflect.DeepEqual(x.now, s.kept.before.find(x.Name).now)
		}
	}
}

// join adds a host to the stored scope.
func (s *settings) join(host string) error {
	s.kept.mu.Lock()
	defer s.kept.mu.Unlock()
	x := s.find("scope-also")
	hosts, _ := x.now.([]string)
	if slices.Contains(hosts, host) {
		return nil
	}
	x.now = append(slices.Clip(hosts), host)
	if s.dir == "" {
		return nil
	}
	return s.keep()
}
