// This file lists the ports that are not used for web pages.

package fetch

import (
	"fmt"
	"net/url"
	"strconv"
)

// badPorts are the ports of other protocols, to which a URL could make the crawler send data chosen
// by a stranger: the list of the Fetch Standard, section 2.9, "Port blocking".
var badPorts = func() map[uint16]bool {
	bad := map[uint16]bool{}
	for _, p := range []uint16{
		0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110, 111, 113, 115,
		117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601,
		636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697,
		10080,
	} {
		bad[p] = true
	}
	return bad
}()

// PortError reports a URL with a port that is not contacted: see Options.AnyPort.
type PortError struct{ Port string }

// Error implements error.
func (e *PortError) Error() string {
	return fmt.Sprintf("port %s is another protocol's, and not to be contacted", e.Port)
}

// checkPort judges the port that a URL names; usual is its protocol's own.
func (o *Options) checkPort(u *url.URL, usual string) error {
	port := u.Port()
	if o.AnyPort || port == "" || port == usual {
		return nil
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || badPorts[uint16(n)] {
		return &PortError{port}
	}
	return nil
}

// CheckPort returns a *PortError if Fetch would refuse a URL because of its port, otherwise nil.
func (f *Fetcher) CheckPort(rawURL string) error {
	u, _, err := takeApart(rawURL, "http", "https")
	if err != nil {
		return nil
	}
	return f.opts.checkPort(u, "")
}

// CheckPort works like Fetcher.CheckPort. It permits the protocol's own port.
func (m *Module) CheckPort(rawURL string) error {
	u, _, err := takeApart(rawURL, m.scheme)
	if err != nil {
		return nil
	}
	return m.opts.checkPort(u, m.port)
}
