// This file divides limits that count for hosts of several parts: each part gets an equal share, so that together they
// never exceed the limit.

package route

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
)

// counted are the limits that count something. Depth and period do not.
var counted = []string{"waiting", "served", "bytes", "errors"}

// divide divides the numbers of a member by n, and reports whether there are any: limits are rounded down, and counts,
// which say what was used of them, up.
func (o *object) divide(member string, n int) (divided bool, err error) {
	b, _ := o.find(member)
	in, err := objectOf(b)
	if err != nil || n < 2 {
		return false, nil // a part says what is wrong
	}
	for _, name := range counted {
		v, _ := in.find(name)
		all, err := strconv.ParseInt(string(v), 10, 64)
		if err != nil || all <= 0 {
			continue
		}
		share := all / int64(n)
		if member == "counts" {
			share = (all-1)/int64(n) + 1
		}
		if share == 0 { // which would be no limit
			return false, &problem{kind: "limit", Status: http.StatusUnprocessableEntity, Detail: fmt.Sprintf("%s: a limit of %d is divided among the %d parts that have the hosts: want at least %d", name, all, n, n)}
		}
		in.set(name, share)
		divided = true
	}
	o.set(member, json.RawMessage(in.bytes()))
	return divided, nil
}

// whole returns the rule of n parts together that all have this one, and whether limits in it were divided.
func whole(rule any, n int) (_ any, divided bool) {
	r, _ := rule.(map[string]any)
	limits, _ := r["limits"].(map[string]any)
	if n < 2 || limits == nil {
		return rule, false
	}
	r, limits = maps.Clone(r), maps.Clone(limits)
	for _, name := range counted {
		if share, ok := limits[name].(float64); ok && share > 0 {
			limits[name] = share * float64(n)
			divided = true
		}
	}
	r["limits"] = limits
	return r, divided
}
