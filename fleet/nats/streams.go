// This file asks streams.
//
// The leader of a stream compares the number that a write expects with the last one of its subject before it proposes the write, and
// answers when a majority has it on disk. What a server answers to a read may be old, even from one that believes to lead. So
// a read that must see all writes before it writes a message of its own, the barrier, and asks until a replica answers that has it.

package nats

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/seed-7440039f/frontier/fleet"
)

// names are how the names of a fleet's streams begin, and with them their subjects.
type names string

// token makes a name a word of a subject.
func token(name string) string { return base64.RawURLEncoding.EncodeToString([]byte(name)) }

func (n names) table() string                    { return string(n) + "table" }
func (n names) keySubject(key string) string     { return n.table() + ".key." + token(key) }
func (n names) nodeSubject(node string) string   { return n.table() + ".node." + token(node) }
func (n names) madeSubject(stream string) string { return n.table() + ".made." + stream }
func (n names) logOf(p int) string               { return fmt.Sprintf("%slog-%d", n, p) }
func (n names) recordSubject(p int) string       { return n.logOf(p) + ".record" }
func (n names) purgedSubject(p int) string       { return n.logOf(p) + ".purged" }
func barrierSubject(stream string) string        { return stream + ".barrier" }

// changed is where a leader says, to those that listen, that the table has changed.
func (n names) changed() string { return string(n) + "changed.>" }

// nameOf returns the name that a subject ends with.
func nameOf(subject string) (string, error) {
	b, err := base64.RawURLEncoding.DecodeString(subject[strings.LastIndexByte(subject, '.')+1:])
	if err != nil {
		return "", fmt.Errorf("fleet: nats: subject %q: %w", subject, err)
	}
	return string(b), nil
}

const (
	// writeTime is how long a write may take, and callTime any other request. What was on its way to a leader that ended is lost.
	writeTime = 4 * time.Second
	callTime  = 2 * time.Second
	// askAgain is the pause before the next attempt of a request.
	askAgain = 20 * time.Millisecond
	// pageRecords and pageBytes are the most that is read at once.
	pageRecords = 256
	pageBytes   = 4 << 20
)

// What JetStream answers, as its errors.json has it.
const (
	notFound  = 10059 // no such stream
	notMember = 10044 // no such server
	wrongLast = 10071 // the subject has another last number
)

// problem is an error that JetStream answers with.
type problem struct {
	Code        int    `json:"err_code"`
	Description string `json:"description"`
}

func (p *problem) Error() string { return fmt.Sprintf("%s (%d)", p.Description, p.Code) }

// is reports whether err is a problem with a code.
func is(err error, code int) bool {
	var p *problem
	return errors.As(err, &p) && p.Code == code
}

// pause waits for d, and reports whether ctx has not ended.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// answer is what JetStream answers, as far as it matters here.
type answer struct {
	Error   *problem `json:"error"`
	Number  uint64   `json:"seq"`
	Streams []string `json:"streams"`
	Config  struct {
		Replicas int `json:"num_replicas"`
	} `json:"config"`
	Cluster struct {
		Replicas []struct {
			Name    string `json:"name"`
			Current bool   `json:"current"`
		} `json:"replicas"`
	} `json:"cluster"`
}

// answered reads an answer.
func answered(m *nats.Msg, err error) (a answer, _ error) {
	if err == nil {
		err = json.Unmarshal(m.Data, &a)
	}
	if err == nil && a.Error != nil {
		err = a.Error
	}
	return a, err
}

// call makes one request of JetStream's API.
func call(ctx context.Context, c *nats.Conn, subject string, request any) (a answer, err error) {
	var b []byte
	if request != nil {
		if b, err = json.Marshal(request); err != nil {
			return a, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	return answered(c.RequestWithContext(ctx, subject, b))
}

// publish adds a message to a stream, and returns its number. If its outcome is not known, it returns an error.
func (e *Engine) publish(ctx context.Context, subject string, header nats.Header, data []byte) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	a, err := answered(e.conn.RequestMsgWithContext(ctx, &nats.Msg{Subject: subject, Header: header, Data: data}))
	return a.Number, err
}

// compareAndSet adds a message to a stream if the last one of its subject still has a number, 0 for none.
func (e *Engine) compareAndSet(ctx context.Context, stream, subject string, last uint64, data []byte) (uint64, error) {
	if len(data) > recordMost {
		return 0, fmt.Errorf("fleet: nats: %d bytes are more than %d", len(data), recordMost)
	}
	if err := e.ensure(ctx, stream); err != nil {
		return 0, err
	}
	number, err := e.publish(ctx, subject, nats.Header{nats.ExpectedLastSubjSeqHdr: {strconv.FormatUint(last, 10)}}, data)
	if is(err, wrongLast) {
		var now uint64 // an answer with less is that of a server that does not know the end
		if _, bad := fmt.Sscanf(err.Error(), "wrong last sequence: %d", &now); bad == nil && now > last {
			return 0, fleet.ErrConflict
		}
	}
	return number, err
}

// ensure makes a stream if there never was one. A stream that was there and is not is lost: another would hide that.
func (e *Engine) ensure(ctx context.Context, stream string) error {
	if _, ok := e.known.Load(stream); ok {
		return nil
	}
	_, err := call(ctx, e.conn, "$JS.API.STREAM.INFO."+stream, nil)
	if is(err, notFound) {
		if err = e.isNew(ctx, stream); err == nil {
			err = e.make(ctx, stream)
		}
	}
	if err == nil && stream != e.table() {
		_, err = e.publish(ctx, e.madeSubject(stream), nil, nil)
	}
	if err != nil {
		return fmt.Errorf("fleet: nats: stream %s: %w", stream, err)
	}
	e.known.Store(stream, true)
	return nil
}

var errLost = errors.New("it was there, and is lost")

// isNew returns an error if there was a stream before.
func (e *Engine) isNew(ctx context.Context, stream string) error {
	if stream == e.table() {
		if !e.mayBegin {
			return errLost
		}
		return nil
	}
	found, _, err := e.state(ctx, e.table(), e.madeSubject(stream))
	if err == nil && len(found) > 0 {
		err = errLost
	}
	return err
}

func (e *Engine) make(ctx context.Context, stream string) error {
	replicas, err := e.replicas(ctx, stream)
	if err != nil {
		return err
	}
	settings := map[string]any{
		"name": stream, "subjects": []string{stream + ".>"}, "storage": "file", "retention": "limits", "num_replicas": replicas, "allow_direct": true,
	}
	if stream == e.table() {
		settings["max_msgs_per_subject"] = 1
		settings["republish"] = map[string]any{"src": stream + ".key.>", "dest": e.changed(), "headers_only": true}
	}
	_, err = call(ctx, e.conn, "$JS.API.STREAM.CREATE."+stream, settings)
	return err
}

// replicas returns how many servers have a new stream: a log as many as the table, which is made when a fleet begins.
func (e *Engine) replicas(ctx context.Context, stream string) (int, error) {
	if stream != e.table() {
		a, err := call(ctx, e.conn, "$JS.API.STREAM.INFO."+e.table(), nil)
		return a.Config.Replicas, err
	}
	switch {
	case e.servers < 3:
		return e.servers, nil
	case e.servers < 5:
		return 3, nil
	}
	return 5, nil
}

// again asks until there is an answer. When ctx ends it returns the last reason of an attempt that ctx did not cut short.
func again(ctx context.Context, ask func() error) (last error) {
	for {
		err := ask()
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		if !pause(ctx, askAgain) {
			return errors.Join(context.Cause(ctx), last)
		}
	}
}

// barrier writes a message that comes after all writes that have returned, and returns its number.
func (e *Engine) barrier(ctx context.Context, stream string) (number uint64, err error) {
	err = again(ctx, func() (err error) {
		if err = e.ensure(ctx, stream); err == nil {
			number, err = e.publish(ctx, barrierSubject(stream), nil, nil)
		}
		return err
	})
	return number, err
}

// message is one of a stream.
type message struct {
	subject string
	number  uint64
	data    []byte
}

// state returns the last message of each subject. It sees every write that returned before, and says through which number.
func (e *Engine) state(ctx context.Context, stream string, subjects ...string) (found []message, through uint64, err error) {
	number, err := e.barrier(ctx, stream)
	if err != nil {
		return nil, 0, err
	}
	err = again(ctx, func() (err error) {
		found, through, err = e.latest(ctx, stream, 0, append(subjects, barrierSubject(stream))...)
		if err == nil && through < number {
			err = fmt.Errorf("fleet: nats: a replica of %s has %d messages of %d", stream, through, number)
		}
		return err
	})
	return found, through, err
}

// latest returns the last message of each subject that has a number of at least from, as a replica has them, and through which
// number that has all. Barriers are left out.
func (e *Engine) latest(ctx context.Context, stream string, from uint64, subjects ...string) (found []message, through uint64, err error) {
	found, end, err := e.direct(ctx, stream, map[string]any{"multi_last": subjects, "seq": from})
	if err != nil {
		return nil, 0, err
	}
	through, err = strconv.ParseUint(end.Get("Nats-UpTo-Sequence"), 10, 64)
	return found, through, err
}

// direct asks any replica of a stream for messages, and returns them with what the answer ends with.
func (e *Engine) direct(ctx context.Context, stream string, request any) (found []message, end nats.Header, err error) {
	b, err := json.Marshal(request)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	at := e.conn.NewRespInbox()
	answers, err := e.conn.SubscribeSync(at)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = answers.Unsubscribe() }()
	if err := e.conn.PublishRequest("$JS.API.DIRECT.GET."+stream, at, b); err != nil {
		return nil, nil, err
	}
	for {
		m, err := answers.NextMsgWithContext(ctx)
		if err != nil {
			return nil, nil, err
		}
		switch status := m.Header.Get("Status"); {
		case status == "204":
			return found, m.Header, nil
		case status != "":
			return nil, nil, fmt.Errorf("stream %s: %s %s", stream, status, m.Header.Get("Description"))
		}
		x := message{subject: m.Header.Get("Nats-Subject"), data: m.Data}
		if x.number, err = strconv.ParseUint(m.Header.Get("Nats-Sequence"), 10, 64); err != nil {
			return nil, nil, err
		}
		if x.subject != barrierSubject(stream) {
			found = append(found, x)
		}
	}
}
