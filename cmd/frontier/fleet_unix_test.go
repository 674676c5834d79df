// This file tests a fleet: three processes serve one frontier, and die one after the other.

//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/client"
	"github.com/seed-7440039f/frontier/fleet"
)

// machine is one process of a fleet.
type machine struct {
	name, dir, log, address string
	cmd                     *exec.Cmd
}

// givenPorts are those that freePort has returned.
var givenPorts sync.Map

// freePort returns an unused address of loopback, below the ports that systems give to outgoing
// connections: a machine gets its own again after a while.
func freePort(t *testing.T) string {
	for range 1000 {
		port := 12000 + rand.IntN(20000)
		if _, given := givenPorts.LoadOrStore(port, true); given {
			continue
		}
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

func (m *machine) start(t *testing.T, peers string, more ...string) {
	out, err := os.OpenFile(m.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	defer out.Close()
	if !slices.Contains(more, "-grpc") {
		more = append(more, "-grpc", "off")
	}
	m.cmd = exec.Command(os.Args[0], append([]string{"serve", "-fleet", "test", "-node", m.name, "-dir", m.dir, "-fleet-peers", peers, "-fleet-ttl", "5s",
		"-http", m.address, "-delay", "1s", "-lease-time", "6s"}, more...)...)
	m.cmd.Env = append(os.Environ(), asCommand+"=1")
	m.cmd.Stdout, m.cmd.Stderr = out, out
	require.NoError(t, m.cmd.Start())
}

// get returns the status and the body of an answer; 0 if there was none.
func (m *machine) get(path string) (int, string) {
	a, err := http.Get("http://" + m.address + path)
	if err != nil {
		return 0, err.Error()
	}
	defer a.Body.Close()
	b, _ := io.ReadAll(a.Body)
	return a.StatusCode, string(b)
}

func (m *machine) ready() bool {
	status, _ := m.get("/readyz")
	return status == http.StatusOK
}

// begin starts a fleet of three machines beside other tests, and waits until they are ready. fail ends the test with their logs, within
// does so if ok is not true in time.
func begin(t *testing.T, more ...string) (all []*machine, peers []string, fail func(string), within func(d time.Duration, what string, ok func() bool)) {
	if testing.Short() {
		t.Skip("three processes take half a minute: -short")
	}
	t.Parallel() // it waits most of the time
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		m := &machine{name: name, dir: filepath.Join(dir, name), log: filepath.Join(dir, name+".log"), address: freePort(t)}
		all = append(all, m)
		peers = append(peers, name+"="+freePort(t))
	}
	for _, m := range all {
		m.start(t, strings.Join(peers, ","), more...)
		t.Cleanup(func() { _ = m.cmd.Process.Kill(); _ = m.cmd.Wait() })
	}
	fail = func(text string) {
		for _, m := range all {
			b, _ := os.ReadFile(m.log)
			t.Logf("%s:\n%s", m.name, b)
		}
		t.Fatal(text)
	}
	within = func(d time.Duration, what string, ok func() bool) {
		for end := time.Now().Add(d); !ok(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				fail(what + ": not within " + d.String())
			}
		}
	}
	for _, m := range all {
		within(time.Minute, "ready", func() bool { return m.ready() })
	}
	return all, peers, fail, within
}

// again tries to start another process in the folder of a machine that runs, which goes on as if nothing were.
func (m *machine) again(t *testing.T, as string, more ...string) {
	other := &machine{name: as, dir: m.dir, log: filepath.Join(t.TempDir(), "log"), address: freePort(t)}
	other.start(t, as+"="+freePort(t)+",z="+freePort(t), more...)
	require.Error(t, other.cmd.Wait())
	b, err := os.ReadFile(other.log)
	require.NoError(t, err)
	require.Contains(t, string(b), "the folder is in use: "+m.dir)
	code, _, said := operate(t, "status", "-dir", m.dir)
	require.Zero(t, code, said)
}

func (m *machine) client(t *testing.T) *client.Client {
	f, err := client.New("http://"+m.address, client.Options{})
	require.NoError(t, err)
	return f
}

// commands runs the commands of an operator in the folder of a machine whose fleet has partitions.
func commands(t *testing.T, m *machine) {
	run := func(args ...string) string {
		t.Helper()
		code, out, said := operate(t, append(args, "-dir", m.dir)...)
		require.Zero(t, code, "%v: %s", args, said)
		return out
	}
	for i := range 12 {
		require.Contains(t, run("hosts"), fmt.Sprintf("h%d.example", i))
	}
	require.Contains(t, run("explain", "h3.example"), "h3.example")
	require.Contains(t, run("explain", "http://h3.example/"), "http://h3.example/")
	run("add", "http://held1.example/", "http://held2.example/", "http://held3.example/")
	for i := range 3 {
		require.Contains(t, run("urls", fmt.Sprintf("held%d.example", i+1)), "http://held")
	}
	run("pause", "*")
	require.Contains(t, run("rules"), "paused")
	require.Contains(t, run("status"), "paused")
	run("unpause", "*")
	run("delete", "-yes", "held1.example")
	run("delete", "-yes", "held2.example")
	run("delete", "-yes", "held3.example")
	run("leases")
	text := run("export")
	require.Equal(t, 3, strings.Count(text, `{"frontier":1,`))
	file := filepath.Join(t.TempDir(), "export")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	run("import", file)
	code, _, said := operate(t, "checkpoint", "-dir", m.dir)
	require.Equal(t, exitError, code)
	require.Contains(t, said, "it makes no checkpoints", "as a server says")
	require.NoError(t, os.WriteFile(file, []byte("http://h1.example/\nhttp://held4.example/\nhttp://held5.example/\n"), 0o600))
	require.Contains(t, run("changed", file), "URLs: 3; known, looked at again when that is worth it: 1; new: 2;")
	for i := range 2 {
		host := fmt.Sprintf("held%d.example", i+4)
		require.Contains(t, run("urls", host), host)
		run("delete", "-yes", host)
	}

	status, page := m.get("/")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, page, `<a href="parts/2/">2</a></th><td data-label="State">ready</td>`)
	_, page = m.get("/parts/2/hosts") // or asks for the token
	require.Contains(t, page, `href="./style.css"`)
	status, _ = m.get("/parts/2/style.css")
	require.Equal(t, http.StatusOK, status)
}

// The hosts of a frontier are divided over partitions, which different machines may have. Each machine answers
// for all of them, and when one dies the others take its partitions over.
func TestAFleetDividesItsHosts(t *testing.T) {
	all, _, fail, within := begin(t, "-fleet-partitions", "3", "-memory", "256M", "-grace", "2s")
	state := func(m *machine) (s fleet.State, open int) {
		if status, said := m.get("/v1/fleet"); status == http.StatusOK {
			require.NoError(t, json.Unmarshal([]byte(said), &s))
		}
		for _, p := range s.Partitions {
			if p.State == "open" || p.State == "held" {
				open++
			}
		}
		return s, open
	}
	within(time.Minute, "all partitions are open", func() bool { _, open := state(all[0]); return open == 3 })
	code, out, said := operate(t, "status", "-dir", all[1].dir)
	require.Zero(t, code, said)
	require.Contains(t, out, "partition 2 ")
	all[1].again(t, all[1].name, "-fleet-partitions", "3", "-memory", "256M")
	f, ctx := all[0].client(t), t.Context()
	for i := range 12 {
		_, err := f.Add(ctx, frontier.Entry{URL: fmt.Sprintf("http://h%d.example/", i)})
		require.NoError(t, err)
	}
	got := map[string]bool{}
	for i := range 6 {
		l, err := f.Next(ctx)
		require.NoError(t, err)
		require.False(t, got[l.Entry.URL])
		got[l.Entry.URL] = true
		link := frontier.Entry{URL: fmt.Sprintf("http://link%d.example/", i)}
		_, err = f.DoneContext(ctx, l, frontier.Outcome{Add: []frontier.Entry{link}})
		require.NoError(t, err)
	}
	lines := 0
	for p := range 3 {
		status, said := all[2].get(fmt.Sprintf("/parts/%d/v1/export", p))
		require.Equal(t, http.StatusOK, status)
		n := strings.Count(said, `"url":"http://`)
		require.Less(t, n, 18)
		lines += n
		status, said = all[2].get(fmt.Sprintf("/parts/%d/metrics", p))
		require.Equal(t, http.StatusOK, status)
		require.Contains(t, said, "frontier_fleet_nodes_alive 3")
	}
	require.Equal(t, 18, lines, "each URL is at one partition")
	status, _ := all[2].get("/parts/3/metrics")
	require.Equal(t, http.StatusNotFound, status)
	require.NoError(t, f.Close())

	commands(t, all[1])

	s, _ := state(all[0])
	dead := slices.IndexFunc(all, func(m *machine) bool { return m.name == s.Partitions[0].Owner })
	require.NoError(t, all[dead].cmd.Process.Kill())
	_ = all[dead].cmd.Wait()
	f = all[(dead+1)%3].client(t)
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for len(got) < 18 {
		l, err := f.Next(ctx)
		if err != nil {
			fail(err.Error())
		}
		require.False(t, got[l.Entry.URL], l.Entry.URL)
		got[l.Entry.URL] = true
		require.NoError(t, f.Done(l, frontier.Outcome{}))
	}
	_, err := f.Next(ctx)
	require.ErrorIs(t, err, frontier.ErrExhausted)
	require.NoError(t, f.Close())
	code, out, said = operate(t, "stop", "-dir", all[(dead+1)%3].dir)
	require.Zero(t, code, said)
	require.Contains(t, out, "stops, and hands over what it has")
	require.Zero(t, ended(t, all[(dead+1)%3].cmd, all[(dead+1)%3].log))
	last := all[(dead+2)%3]
	require.NoError(t, last.cmd.Process.Signal(syscall.SIGTERM), "the other one goes on")
	require.NoError(t, last.cmd.Wait(), "it loses nothing, although it can hand over to no other")
	log, err := os.ReadFile(last.log)
	require.NoError(t, err)
	require.Contains(t, string(log), "stopped without handing over: nothing that was acknowledged is lost")
	require.NotContains(t, string(log), "level=ERROR")
}

// onePageIsOut adds n pages of as many hosts, takes two, and ends the first. The lease of the other ends before until.
func onePageIsOut(t *testing.T, at *machine, n int) (done, out string, until time.Time) {
	f := at.client(t)
	for i := range n {
		_, err := f.Add(t.Context(), frontier.Entry{URL: fmt.Sprintf("http://h%d.example/", i)})
		require.NoError(t, err)
	}
	first, err := f.Next(t.Context())
	require.NoError(t, err)
	require.NoError(t, f.Done(first, frontier.Outcome{}))
	second, err := f.Next(t.Context())
	require.NoError(t, err)
	until = time.Now().Add(6 * time.Second)
	require.NoError(t, f.Close())
	return first.Entry.URL, second.Entry.URL, until
}

// comeAgain takes n pages after a machine has died: none before its last lease, until then, and the delay have ended, none
// that is done, and the one that was out.
func comeAgain(ctx context.Context, t *testing.T, f *client.Client, until time.Time, done, out string, n int) {
	got := map[string]bool{done: true}
	for range n {
		l, err := f.Next(ctx)
		require.NoError(t, err)
		require.False(t, time.Now().Before(until.Add(900*time.Millisecond)), "%s %v before the last lease and the delay have ended", l.Entry.URL, time.Until(until))
		require.False(t, got[l.Entry.URL], l.Entry.URL)
		got[l.Entry.URL] = true
		require.NoError(t, f.Done(l, frontier.Outcome{}))
	}
	require.True(t, got[out])
}

// A frontier outlives the machine that has it. What was acknowledged is there; no host is contacted
// before the leases have ended that the dead machine had handed out. A machine that is stopped hands over.
func TestAFleetOutlivesItsMachines(t *testing.T) {
	t.Parallel()
	t.Run("etcd", func(t *testing.T) { outlives(t, "-fleet-engine", "etcd") })
	t.Run("nats", func(t *testing.T) { outlives(t, "-fleet-engine", "nats", "-fleet-ttl", "10s") }) // its elections take longer
}

func outlives(t *testing.T, more ...string) {
	all, peers, fail, within := begin(t, more...)
	var owner *machine
	var others []*machine
	find := func() {
		owner, others = nil, nil
		var s fleet.State
		for _, m := range all {
			if status, said := m.get("/v1/fleet"); status == http.StatusOK {
				require.NoError(t, json.Unmarshal([]byte(said), &s))
			}
		}
		for _, m := range all {
			switch {
			case m.cmd.ProcessState != nil:
			case m.name == s.Partitions[0].Owner:
				owner = m
			default:
				others = append(others, m)
			}
		}
	}
	find()
	for _, m := range all {
		status, said := m.get("/v1/fleet")
		require.Equal(t, http.StatusOK, status, said)
		require.Contains(t, said, fmt.Sprintf(`"state":"open","owner":%q`, owner.name))
		require.Contains(t, said, `"log":{"changes":`, "the owner answers")
		code, out, _ := operate(t, "status", "-dir", m.dir)
		require.Zero(t, code)
		require.Contains(t, out, "as node "+m.name+" sees it, which has heard of the others lately")
		require.Contains(t, out, "open at "+owner.name+", epoch ")
	}
	status, said := owner.get("/metrics")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, said, "frontier_fleet_nodes_alive 3")
	owner.again(t, owner.name, more...)
	drained, began := owner, time.Now()
	code, out, said := operate(t, "drain", "-dir", owner.dir)
	require.Zero(t, code, said)
	t.Logf("drained in %v", time.Since(began))
	require.Less(t, time.Since(began), 10*time.Second) // 1 s, on a machine with nothing else to do
	require.Contains(t, out, "takes no partition")
	find()
	require.NotEqual(t, drained, owner)
	code, out, said = operate(t, "drain", "-back", "-dir", drained.dir)
	require.Zero(t, code, said)
	require.NotContains(t, out, "takes no partition")
	a, err := http.Post("http://"+drained.address+"/v1/fleet?drain="+drained.name+"&back=true", "", nil) // another machine answers, and passes it on
	require.NoError(t, err)
	require.NoError(t, a.Body.Close())
	require.Equal(t, http.StatusOK, a.StatusCode)
	a, err = http.Post("http://"+drained.address+"/v1/fleet?drain=x", "", nil)
	require.NoError(t, err)
	require.NoError(t, a.Body.Close())
	require.Equal(t, http.StatusNotFound, a.StatusCode)
	_, said = drained.get("/v1/fleet")
	require.NotContains(t, said, `"draining":true`)
	done, left, until := onePageIsOut(t, others[0], 4)
	require.NoError(t, owner.cmd.Process.Kill())
	_ = owner.cmd.Wait()
	f := others[1].client(t)
	within(time.Minute, "taken over", func() bool { return others[1].ready() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	comeAgain(ctx, t, f, until, done, left, 3)
	_, err = f.Add(ctx, frontier.Entry{URL: "http://h9.example/"})
	require.NoError(t, err)
	require.NoError(t, f.Close())

	dead := owner
	find()
	dead.start(t, strings.Join(peers, ","), more...) // two of three must be alive for the rest
	within(time.Minute, "back", func() bool { return dead.ready() })
	require.NoError(t, owner.cmd.Process.Signal(syscall.SIGTERM))
	if err := owner.cmd.Wait(); err != nil {
		fail("stopped: " + err.Error())
	}
	began = time.Now()
	f = others[0].client(t)
	l, err := f.Next(ctx)
	if err != nil {
		fail(err.Error())
	}
	require.Equal(t, "http://h9.example/", l.Entry.URL)
	require.Less(t, time.Since(began), 20*time.Second)
	require.NoError(t, f.Done(l, frontier.Outcome{}))
	require.NoError(t, f.Close())

	find()
	last, gone := owner, others[0]
	require.NoError(t, gone.cmd.Process.Kill())
	_ = gone.cmd.Wait()
	within(20*time.Second, "an owner without a majority is not ready", func() bool {
		status, said := last.get("/readyz")
		return status == http.StatusServiceUnavailable && strings.Contains(said, "not heard of the others")
	})
	_, said = last.get("/v1/fleet")
	require.Contains(t, said, `"confirmed":false`)
	gone.start(t, strings.Join(peers, ","), more...)
	for _, m := range []*machine{last, gone} {
		within(time.Minute, "a majority is back", func() bool { return m.ready() })
	}

	third := all[slices.IndexFunc(all, func(m *machine) bool { return m != last && m != gone })]
	third.start(t, strings.Join(peers, ","), more...)
	within(time.Minute, "three again", func() bool { return third.ready() })
	require.NoError(t, gone.cmd.Process.Kill()) // and its disk
	_ = gone.cmd.Wait()
	require.NoError(t, os.RemoveAll(gone.dir))
	gone.start(t, strings.Join(peers, ","), more...)
	require.Error(t, gone.cmd.Wait(), "an empty folder does not take part under the old name")
	it := peers[slices.Index(all, gone)]
	log, err := os.ReadFile(gone.log)
	require.NoError(t, err)
	require.Contains(t, string(log), "frontier member -dir ITS-FOLDER "+it)
	within(time.Minute, "let in", func() bool {
		code, out, said = operate(t, "member", "-dir", last.dir, it)
		return code == 0
	})
	require.Contains(t, out, "as node "+last.name+" sees it")
	gone.start(t, strings.Join(peers, ","), more...)
	within(time.Minute, "the machine with a new disk is ready", func() bool { return gone.ready() })
	within(10*time.Second, "the others see it", func() bool {
		_, said := last.get("/v1/fleet")
		return strings.Count(said, `"alive":true`) == 3
	})
	code, _, said = operate(t, "member", "-dir", last.dir, "-remove", gone.name)
	require.NotZero(t, code)
	require.Contains(t, said, "is alive: stop it first")
	code, _, said = operate(t, "stop", "-dir", gone.dir)
	require.Zero(t, code, said)
	require.Zero(t, ended(t, gone.cmd, gone.log))
	code, _, said = operate(t, "stop", "-dir", gone.dir)
	require.NotZero(t, code)
	require.Contains(t, said, "no machine of a fleet runs in")
	require.True(t, last.ready(), "the machine that has the frontier goes on")
	within(10*time.Second, "removed", func() bool { // once the other machine has seen that it left
		code, out, _ = operate(t, "member", "-dir", last.dir, "-remove", gone.name)
		return code == 0
	})
	require.NotContains(t, out, "node "+gone.name+"\t")
}
