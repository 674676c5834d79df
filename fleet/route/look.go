// This file puts the answers of all parts together: sums, and lists one part after the other.

package route

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// values is a JSON object.
func values(b []byte) (m map[string]any) {
	_ = json.Unmarshal(b, &m)
	return m
}

// merged puts what several parts have said into one: it adds numbers, unless they are measures of time. A
// sentence has the names of the parts. Rules that differ are there by part.
func merged(names []string, all []map[string]any) map[string]any {
	sum := maps.Clone(all[0])
	for _, m := range all[1:] {
		for name, b := range m {
			if a, ok := sum[name]; ok {
				sum[name] = plus(name, a, b)
			} else {
				sum[name] = b
			}
		}
	}
	if len(all) == 1 {
		return sum
	}
	rules, differ := map[string]any{}, false
	for i, m := range all {
		for _, name := range []string{"paused", "blocked_until"} { // what is true of all
			if m[name] == nil {
				delete(sum, name)
			}
		}
		for _, name := range []string{"said", "sentence"} {
			if text, ok := m[name].(string); ok && i == 0 {
				sum[name] = names[i] + ": " + text
			} else if ok {
				sum[name] = fmt.Sprint(sum[name], "; ", names[i], ": ", text)
			}
		}
		rules[names[i]], differ = m["rule"], differ || fmt.Sprint(m["rule"]) != fmt.Sprint(all[0]["rule"])
	}
	if rule, ok := all[0]["rule"]; ok {
		var divided bool
		if sum["rule"], divided = whole(rule, len(all)); divided && !differ {
			sum["divided"] = len(all)
		}
	}
	if differ {
		sum["rule"] = all[0]["rule"]
		sum["rules"] = rules
	}
	delete(sum, "number") // a crawl has another at each part
	return sum
}

// plus adds two values of one member.
func plus(name string, a, b any) any {
	switch x := a.(type) {
	case float64:
		y, _ := b.(float64)
		if name == "running_s" || strings.HasPrefix(name, "wait_") {
			return max(x, y)
		}
		return x + y
	case bool:
		y, _ := b.(bool)
		return x || y
	case map[string]any:
		y, _ := b.(map[string]any)
		sum := maps.Clone(x)
		for k, v := range y {
			if has, ok := sum[k]; ok {
				v = plus(k, has, v)
			}
			sum[k] = v
		}
		return sum
	case []any:
		y, _ := b.([]any)
		sum := slices.Clone(x)
		for i := range min(len(x), len(y)) {
			sum[i] = plus(name, x[i], y[i])
		}
		return sum
	case string:
		if y, _ := b.(string); y == "running" || name == "now" && y > x {
			return y
		}
	}
	return a
}

// ofOne are members of the state that say something of one part alone, and cannot be added.
var ofOne = []string{"title", "state_since", "pace", "eta", "pages_since", "problems", "failing", "gaps", "events", "events_lost", "figures", "recrawl", "rates", "traffic"}

// getStats adds the parts' counts.
func (c *call) getStats() error {
	all, err := c.all(c.r.parts)
	if err != nil {
		return err
	}
	for _, m := range all {
		for _, name := range ofOne {
			delete(m, name)
		}
	}
	return c.reply(merged(names(c.r.parts), all))
}

// names returns the names of parts.
func names(parts []*part) (all []string) {
	for _, p := range parts {
		all = append(all, p.name)
	}
	return all
}

// all asks parts for what the client asked, with a slot for the answers.
func (c *call) all(parts []*part) (all []map[string]any, err error) {
	select {
	case c.r.scans <- struct{}{}:
		defer func() { <-c.r.scans }()
	case <-time.After(time.Second):
		return nil, busy("too many such requests at once: try again")
	}
	found, errs := c.asks(parts, func(*part) asking { return asking{method: "GET", path: c.q.URL.RequestURI()} })
	for _, b := range found {
		all = append(all, values(b))
	}
	return all, errors.Join(errs...)
}

// getCrawls adds the parts' counts of each crawl.
func (c *call) getCrawls() error {
	found, err := c.all(c.r.parts)
	if err != nil {
		return err
	}
	names, by := map[string][]string{}, map[string][]map[string]any{}
	for i, x := range found {
		list, _ := x["crawls"].([]any)
		for _, crawl := range list {
			m, _ := crawl.(map[string]any)
			delete(m, "number")
			name, _ := m["name"].(string)
			names[name], by[name] = append(names[name], c.r.parts[i].name), append(by[name], m)
		}
	}
	all := []map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		all = append(all, merged(names[name], by[name]))
	}
	return c.reply(map[string]any{"crawls": all})
}

// lists puts lists of all parts into one: the member list of each answer, in an order, n at most.
func (c *call) lists(list string, parts []*part, n int, order func(a, b map[string]any) int) (map[string]any, error) {
	found, err := c.all(parts)
	if err != nil {
		return nil, err
	}
	rows := []map[string]any{}
	for i, x := range found {
		some, _ := x[list].([]any)
		for _, row := range some {
			m, _ := row.(map[string]any)
			if id, ok := m["lease"].(string); ok {
				m["lease"] = id + parts[i].tail
			}
			rows = append(rows, m)
		}
		delete(x, list)
	}
	slices.SortStableFunc(rows, order)
	sum := merged(names(parts), found)
	sum[list] = rows[:min(n, len(rows))]
	return sum, nil
}

// n returns the parameter n.
func (c *call) n(otherwise int) int {
	n, err := strconv.Atoi(c.query.Get("n"))
	if err != nil || n <= 0 {
		return otherwise // a part has judged it
	}
	return n
}

// byText orders by the text of a member; those without it come first.
func byText(name string) func(a, b map[string]any) int {
	return func(a, b map[string]any) int {
		x, _ := a[name].(string)
		y, _ := b[name].(string)
		return cmp.Compare(x, y)
	}
}

// sorted answers with the lists of all parts in one, n rows at most, in the order of a member.
func sorted(list string, n int, by string) func(*call) error {
	return func(c *call) error {
		sum, err := c.lists(list, c.r.parts, c.n(n), byText(by))
		if err != nil {
			return err
		}
		return c.reply(sum)
	}
}

// getRules lists the rules of all parts, those of a scope once if they are the same.
func (c *call) getRules() error {
	sum, err := c.lists("rules", c.r.parts, math.MaxInt, byText("scope"))
	if err != nil {
		return err
	}
	rules := []map[string]any{}
	for rest := sum["rules"].([]map[string]any); len(rest) > 0; {
		n := 1
		for n < len(rest) && reflect.DeepEqual(rest[0], rest[n]) {
			n++
		}
		one := rest[0]
		var divided bool
		if one["rule"], divided = whole(one["rule"], n); divided {
			one["divided"] = n
		}
		rules, rest = append(rules, one), rest[n:]
	}
	sum["rules"] = rules
	return c.reply(sum)
}

// getRule answers the rule of a scope, if it is the same at all parts.
func (c *call) getRule() error {
	parts, err := c.r.within(c.q.PathValue("scope"))
	if err != nil {
		return err
	}
	found, errs := c.asks(parts, func(*part) asking { return asking{method: "GET", path: c.q.URL.RequestURI()} })
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for i, b := range found {
		if !bytes.Equal(b, found[0]) {
			return &problem{kind: "conflict", Status: http.StatusConflict, Detail: fmt.Sprintf("part %s has %s; part %s has %s: set it again", parts[0].name, bytes.TrimSpace(found[0]), parts[i].name, bytes.TrimSpace(b))}
		}
	}
	one := values(found[0])
	var divided bool
	if one["rule"], divided = whole(one["rule"], len(parts)); divided {
		one["divided"] = len(parts)
	}
	return c.reply(one)
}

// from returns the part at which a list goes on, and the parts behind it. A cursor is the name of a part,
// a slash, and the part's cursor.
func from(parts []*part, cursor string) ([]*part, string, error) {
	name, after, ok := strings.Cut(cursor, "/")
	for i, p := range parts {
		if cursor == "" || ok && p.name == name {
			return parts[i:], after, nil
		}
	}
	return nil, "", badRequest("after: %.80q is no cursor of this list: want the next of its last page", cursor)
}

// path returns the path of the request with another parameter.
func (c *call) path(name, value string) string {
	q := maps.Clone(c.query)
	if q.Del(name); value != "" || name == "after" && c.query.Has("after") && strings.HasSuffix(c.q.URL.Path, "/list") {
		q.Set(name, value)
	}
	if len(q) == 0 {
		return c.q.URL.EscapedPath()
	}
	return c.q.URL.EscapedPath() + "?" + url.Values(q).Encode()
}

// getHosts lists hosts: one part after the other, or the largest of all.
func (c *call) getHosts() error {
	parts, err := c.r.within(cmp.Or(c.query.Get("scope"), "*"))
	if err != nil {
		return err
	}
	if c.query.Get("sort") == "waiting" {
		sum, err := c.lists("hosts", parts, c.n(100), func(a, b map[string]any) int {
			x, _ := a["waiting"].(float64)
			y, _ := b["waiting"].(float64)
			return cmp.Compare(y, x)
		})
		if err != nil {
			return err
		}
		return c.reply(sum)
	}
	parts, after, err := from(parts, c.query.Get("after"))
	if err != nil {
		return err
	}
	b, err := c.ask(c.q.Context(), parts[0], asking{method: "GET", path: c.path("after", after)})
	if err != nil {
		return err
	}
	c.hold(len(b))
	o, err := objectOf(b)
	if err != nil {
		return err
	}
	preparing, _ := o.find("preparing")
	switch next := o.text("next"); {
	case next != "":
		o.set("next", parts[0].name+"/"+next)
	case preparing != nil && after == "" && c.query.Get("after") != "": // the client asks again from the same place
		o.set("next", parts[0].name+"/")
	case preparing == nil && len(parts) > 1:
		o.set("next", parts[1].name+"/")
	}
	return c.send(http.StatusOK, jsonType, append(o.bytes(), '\n'))
}

// getQueues lists the queues of a crawl. The cursor is a host, which says how far the list has come.
func (c *call) getQueues() error {
	parts := c.r.parts
	if after := c.query.Get("after"); after != "" {
		at := c.r.of("", after)
		parts = parts[slices.Index(parts, at):]
	}
	return c.inTurn(parts, c.query.Get("after"))
}

// getList lists URLs.
func (c *call) getList() error {
	parts := c.r.parts
	if host := c.query.Get("host"); host != "" {
		parts = []*part{c.r.of("", host)}
	}
	parts, after, err := from(parts, c.query.Get("after"))
	if err != nil {
		return err
	}
	return c.inTurn(parts, after)
}

// inTurn writes the lines of one part after the other, of the first from behind after on. In pages, it
// ends with the page of a part. A crawl may be unknown to some parts.
func (c *call) inTurn(parts []*part, after string) error {
	left := c.n(-1)
	paged := c.query.Has("after") && strings.HasSuffix(c.q.URL.Path, "/list")
	var unknown error
	for i, p := range parts {
		if left == 0 {
			break
		}
		path := c.path("after", after)
		if after = ""; left > 0 {
			q, _ := url.Parse(path)
			v := q.Query()
			v.Set("n", strconv.Itoa(left))
			path = q.EscapedPath() + "?" + v.Encode()
		}
		res, err := c.open(c.q.Context(), p, asking{method: "GET", path: path, accept: linesType, wait: long})
		if err != nil && problemOf(err).kind == "unknown-crawl" {
			unknown = err
			continue
		}
		if err != nil {
			return err
		}
		next, err := c.copyLines(res.Body, &left, paged)
		_ = res.Body.Close()
		if err != nil || !paged {
			if err == nil {
				continue
			}
			return err
		}
		switch {
		case next != "":
			next = p.name + "/" + next
		case i+1 < len(parts):
			next = parts[i+1].name + "/"
		default:
			return nil
		}
		line := object{}
		line.set("after", next)
		return c.write(append(line.bytes(), '\n'))
	}
	if !c.began && unknown != nil { // unless the parts that were not asked know it
		crawl := cmp.Or(c.q.PathValue("name"), c.query.Get("crawl"))
		_, errs := c.asks(c.r.parts, func(*part) asking { return asking{method: "GET", path: "/v1/crawls/" + url.PathEscape(crawl)} })
		if _, err := settled(c.r.parts, errs); err != nil {
			return err
		}
	}
	return c.more(nil)
}

// copyLines copies the lines of a part's list, and counts them. In pages, it returns the cursor in the
// last line.
func (c *call) copyLines(body io.Reader, left *int, paged bool) (next string, err error) {
	if !c.began {
		if err := c.send(http.StatusOK, linesType, nil); err != nil {
			return "", err
		}
	}
	in := bufio.NewReaderSize(body, readAhead)
	for {
		line, err := in.ReadBytes('\n')
		switch {
		case len(line) == 0 && errors.Is(err, io.EOF):
			return "", nil
		case err != nil && !errors.Is(err, io.EOF):
			return "", busy("the list broke off: %v", err)
		case bytes.HasPrefix(line, []byte(`{"type":`)):
			x := &problem{}
			_ = json.Unmarshal(line, x)
			return "", x
		case paged && bytes.HasPrefix(line, []byte(`{"after":`)):
			o, _ := objectOf(line)
			return o.text("after"), nil
		}
		*left--
		if err := c.write(line); err != nil {
			return "", err
		}
	}
}

// notReady says which parts are not ready, and why.
func (c *call) notReady() map[string]string {
	ctx, cancel := context.WithTimeout(c.q.Context(), 5*time.Second)
	defer cancel()
	c.q = c.q.WithContext(ctx)
	_, errs := c.asks(c.r.parts, func(*part) asking { return asking{method: "GET", path: "/readyz"} })
	not := map[string]string{}
	for i, err := range errs {
		if err != nil {
			not[c.r.parts[i].name] = err.Error()
		}
	}
	return not
}

// getReady says which parts are ready: one is enough.
func (c *call) getReady() error {
	not := c.notReady()
	switch {
	case c.r.closing.Err() != nil:
		return busy("the router is stopping")
	case len(not) == len(c.r.parts):
		return busy("no part is ready: %s", not[c.r.parts[0].name])
	case len(not) > 0:
		return c.reply(map[string]any{"status": "ready", "not_ready": not})
	}
	return c.reply(map[string]string{"status": "ready"})
}
