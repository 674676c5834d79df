// This file makes sure that a server is one part of one division of the hosts: see package fleet/route.

package serve

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
)

// PartHeader is the header in which a router says which part it takes the server for, and what tells that
// division from others.
const PartHeader = "Frontier-Part"

// PartKey is the key of the frontier's value that has it, in exports too. The first change by a router sets it for good.
const PartKey = "part"

// part is what the server is for routers.
type part struct {
	known atomic.Pointer[string]
	mu    sync.Mutex // held while it is stored
}

// IsPart refuses a router that takes the server for another part than those before: hosts would be at two
// parts, and each would contact them. The name is what the router sends as PartHeader.
func (s *Service) IsPart(ctx context.Context, name string, changes bool) error {
	if x := s.part.known.Load(); name == "" || x != nil && *x == name {
		return nil
	}
	s.part.mu.Lock()
	defer s.part.mu.Unlock()
	v, ok, err := s.f.Value(PartKey)
	if err == nil && !ok && changes {
		v = []byte(name)
		err = s.f.SetValue(ctx, PartKey, v)
	}
	if err != nil {
		return err
	}
	if known := string(v); known == name {
		s.part.known.Store(&known)
	} else if known != "" {
		return &problem{kind: "other-part", status: http.StatusConflict, detail: fmt.Sprintf("a router takes this server for %.200s, and it is %.200s: the routers' addresses or names of parts differ", name, known)}
	}
	return nil
}
