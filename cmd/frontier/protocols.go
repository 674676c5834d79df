// This file reads crawl's flag for protocols other than HTTP.

package main

import (
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/fetch/ftp"
	"github.com/seed-7440039f/frontier/crawler/fetch/gopher"
	"github.com/seed-7440039f/frontier/crawler/urlnorm"
)

// protocolFlags is that flag before it is checked.
type protocolFlags struct{ names list }

func (p *protocolFlags) define(fs *flagSet) {
	fs.Var(&p.names, "protocols", "`protocols` to crawl beside http and https, comma-separated: ftp, gopher; not through a -proxy")
}

// apply makes Fetchers with the settings' limits.
func (p *protocolFlags) apply(s *settings) {
	s.crawler.Protocols = map[string]crawler.Fetcher{}
	for _, name := range p.names {
		var f crawler.Fetcher
		var err error
		switch name {
		case "ftp":
			f, err = ftp.New(ftp.Options{Options: s.fetch})
		case "gopher":
			f, err = gopher.New(s.fetch)
			s.crawler.Normalizer = urlnorm.New().Accept("gopher", "70")
		default:
			s.badItem("protocols", name, "want ftp, gopher")
			continue
		}
		if err != nil {
			if s.crawler.Fetcher != nil { // otherwise that Fetcher's fault is reported already
				s.wrong(err, "protocols")
			}
			continue
		}
		s.crawler.Protocols[name] = f
	}
}
