// This file tests frontier serve over real connections.

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// logged is a log that a test waits for.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// serving runs frontier serve until stop is called, which returns its status.
func serving(t *testing.T, args ...string) (base string, stop func() int, log *logged) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	log = &logged{}
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, append([]string{"serve", "-http", "127.0.0.1:0", "-grpc", "127.0.0.1:0"}, args...), strings.NewReader(""), io.Discard, log)
	}()
	address := regexp.MustCompile(`msg=serving http=(\S+)`)
	require.Eventually(t, func() bool { return address.MatchString(log.String()) }, 30*time.Second, time.Millisecond, "%s", log)
	return "http://" + address.FindStringSubmatch(log.String())[1], func() int { cancel(); return <-done }, log
}

func request(t *testing.T, method, url, body, token string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	require.NoError(t, err)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	r.Close = true
	res, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(b)
}

// closing is the end of a body, and closes a channel when that is read.
type closing chan struct{}

func (c closing) Read([]byte) (int, error) {
	close(c)
	return 0, io.EOF
}

func TestAServedFrontierGoesOnWhereItWas(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	base, stop, _ := serving(t, "-dir", dir)
	code, text := request(t, "POST", base+"/v1/urls", `{"url":"http://a.example/","crawl":"news","priority":16}`, "")
	assert.Equal(t, 200, code, text)
	code, text = request(t, "GET", base+"/", "", "")
	assert.Equal(t, 200, code)
	assert.Contains(t, text, "<!doctype html>")
	for _, path := range []string{"/livez", "/readyz", "/metrics", "/v1/openapi.json"} {
		code, text = request(t, "GET", base+path, "", "")
		assert.Equal(t, 200, code, "%s: %s", path, text)
	}
	poll, sent := make(chan error, 1), make(chan struct{})
	go func() {
		body := io.MultiReader(strings.NewReader(`{"wait_s":60,"crawls":["DEFAULT"]}`), closing(sent))
		res, err := http.Post(base+"/v1/leases", "application/json", body)
		if err == nil {
			err = res.Body.Close()
		}
		poll <- err
	}()
	<-sent
	code, text = request(t, "POST", base+"/v1/leases", `{"crawls":["news"],"lease_s":3600.5}`, "")
	assert.Equal(t, 400, code)
	assert.Contains(t, text, "-max-lease")
	code, text = request(t, "POST", base+"/v1/leases", `{"crawls":["news"],"lease_s":3600}`, "")
	assert.Equal(t, 200, code, text)
	status, out, said := typing(t, "leases", "-dir", dir, "a.example")
	assert.Zero(t, status, said)
	assert.Regexp(t, `127\.0\.0\.1 +a\.example .* min .* http://a\.example/`, out)
	_, out, _ = typing(t, "leases", "-dir", dir, "-client", "bot")
	assert.Contains(t, out, "no client has a lease")
	status, _, said = typing(t, "end-leases", "-dir", dir)
	assert.Equal(t, exitUsage, status, said)
	status, out, said = typing(t, "end-leases", "-dir", dir, "-client", "127.0.0.1")
	assert.Zero(t, status, said)
	assert.Contains(t, out, "1 lease that 127.0.0.1 had of * ended")
	code, text = request(t, "GET", base+"/v1/stats", "", "")
	assert.Equal(t, 200, code)
	assert.Contains(t, text, `"waiting":1`)
	assert.Zero(t, stop(), "a long poll under way does not hold the end up")
	<-poll // with an error, if it was not yet under way

	status, _, said = typing(t, "add", "-dir", dir, "http://b.example/")
	assert.Zero(t, status, said)
	status, out, said = typing(t, "urls", "-dir", dir)
	assert.Zero(t, status, said)
	assert.Contains(t, out, "http://b.example/")
	status, _, said = typing(t, "leases", "-dir", dir)
	assert.Equal(t, exitError, status)
	assert.Contains(t, said, "no server runs here")
	for _, command := range []string{"ends", "retry", "report"} {
		status, _, said = typing(t, command, "-dir", dir)
		assert.Equal(t, exitUsage, status, command)
		assert.Contains(t, said, "is of a server, which keeps no record of ends")
	}

	base, stop, _ = serving(t, "-dir", dir)
	code, text = request(t, "GET", base+"/v1/crawls/news", "", "")
	assert.Equal(t, 200, code)
	assert.Contains(t, text, `"waiting":1`)
	assert.Zero(t, stop())
}

func TestTheLogOfAServer(t *testing.T) {
	_, stop, log := serving(t, "-dir", filepath.Join(t.TempDir(), "state"), "-grpc", "off")
	assert.Zero(t, stop())
	assert.NotContains(t, log.String(), "URLFrontierServer")
	assert.True(t, strings.HasSuffix(log.String(), "msg=stopped\n"), log)
}

// The command that stops a server hears that it does.
func TestAServerIsStopped(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	for range 10 {
		_, end, _ := serving(t, "-dir", dir)
		stop(t, dir)
		assert.Zero(t, end())
	}
}

// A server that cannot listen leaves no folder that was not there.
func TestAServerThatCannotListenBeginsNothing(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	dir, at := filepath.Join(t.TempDir(), "new", "state"), taken.Addr().String()
	_, port, err := net.SplitHostPort(at)
	require.NoError(t, err)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, free.Close())
	for _, args := range [][]string{
		{"-http", at, "-grpc", "off"},
		{"-http", "127.0.0.1:0", "-grpc", at},
		{"-http", "127.0.0.1:0", "-grpc", "off", "-fleet", "test", "-node", "a", "-fleet-peers", "a=" + at, "-fleet-partitions", "2"},
		{"-http", "127.0.0.1:0", "-grpc", "off", "-fleet", "test", "-node", "a", "-fleet-peers", "a=" + at, "-fleet-engine", "nats"},
		{"-http", "127.0.0.1:0", "-grpc", "off", "-fleet", "test", "-node", "a", "-fleet-peers", "a=" + free.Addr().String(), "-fleet-port", port},
	} {
		status, _, said := typing(t, append([]string{"serve", "-dir", dir}, args...)...)
		assert.Equal(t, exitError, status)
		assert.Contains(t, said, at)
		assert.NoDirExists(t, filepath.Dir(dir), "%v", args)
	}
}

func TestServeNeedsTokensForOtherMachines(t *testing.T) {
	dir := t.TempDir()
	for _, address := range []string{":0", "0.0.0.0:0", "[::]:0", "192.0.2.1:0"} {
		status, _, said := typing(t, "serve", "-dir", filepath.Join(dir, "state"), "-http", address)
		assert.Equal(t, exitUsage, status)
		assert.Contains(t, said, "other machines may reach it")
	}
	file := filepath.Join(dir, "tokens")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "look %x watcher\ncrawl %x bot\noperate %x op\n", sha256.Sum256([]byte("l")), sha256.Sum256([]byte("c")), sha256.Sum256([]byte("p"))), 0o600))
	t.Setenv("FRONTIER_PAGE_TOKEN", "")
	base, stop, log := serving(t, "-dir", filepath.Join(dir, "state"), "-tokens", file)
	for _, x := range []struct {
		token, method, path string
		want                int
	}{
		{"", "GET", "/v1/stats", 401}, {"wrong", "GET", "/v1/stats", 401}, {"l", "GET", "/v1/stats", 200}, {"l", "POST", "/v1/leases", 403},
		{"c", "POST", "/v1/leases", 200}, {"c", "DELETE", "/v1/rules/a.example", 403}, {"", "GET", "/livez", 200},
		{"", "GET", "/api/status", 401}, {"l", "GET", "/api/status", 401}, {"p", "GET", "/api/status", 200},
	} {
		code, text := request(t, x.method, base+x.path, "", x.token)
		assert.Equal(t, x.want, code, "%v: %s", x, text)
	}
	assert.Zero(t, stop())
	assert.Contains(t, log.String(), "who=watcher")
	assert.NotContains(t, log.String(), "wrong ")
}

func TestServeWarnsOfTokensThatAreNotEncrypted(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "tokens")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "look %x watcher\n", sha256.Sum256([]byte("l"))), 0o600))
	for address, warned := range map[string]bool{"0.0.0.0:0": true, "127.0.0.1:0": false} {
		_, stop, log := serving(t, "-dir", filepath.Join(dir, "state"), "-tokens", file, "-http", address)
		assert.Zero(t, stop())
		assert.Equal(t, warned, strings.Contains(log.String(), "level=WARN msg=\"tokens cross the network unencrypted"), address)

	}
	for _, with := range []*tls.Config{nil, {}} { // a partition has no TLS of its own
		s := newServer()
		s.fleet.partitions, s.tls = 2, with
		assert.Equal(t, with != nil, s.of(1).inner)
	}
}

func TestServeSaysWhatIsWrong(t *testing.T) {
	for _, x := range [][]string{
		{"-http", "127.0.0.1:0"}, {"-dir", "x", "-memory", "71M"}, {"-dir", "x", "-tls-cert", "a"}, {"-dir", "x", "-tokens", "/nowhere"}, {"-dir", "x", "-grpc", ""}, {"-dir", "x", "-http", "localhost"}, {"-dir", "x", "more"},
		{"-dir", "x", "-lease-time", "1us"}, {"-dir", "x", "-delay", "1us"}, {"-dir", "x", "-max-buffered", "1"}, {"-dir", "x", "-grace", "-1s"}, {"-dir", "x", "-max-connections", "0"}, {"-dir", "x", "-config", "/nowhere"},
	} {
		status, _, said := typing(t, append([]string{"serve"}, x...)...)
		assert.Equal(t, exitUsage, status, x)
		assert.NotEmpty(t, said)
	}
	for want, args := range map[string][]string{
		"-client needs -client-ca": {"-client", "crawl=bot"},
		`-names: the name "a.example:80"; want a host name without scheme, port and path, or *`:                                                                          {"-names", "*,a.example:80"},
		`-fleet-peers is "a=127.0.0.1:65536"; want a name that no other has, of letters, digits, dots, underscores and hyphens, =, and host:port, as in a=10.0.0.1:8349`: {"-fleet", "f", "-node", "a", "-fleet-peers", "a=127.0.0.1:65536"},
		`-fleet-peers is "b=127.0.0.1:2"; want an address that no other has: it is that of a`:                                                                            {"-fleet", "f", "-node", "a", "-fleet-peers", "a=127.0.0.1:2,b=127.0.0.1:2"},
		`-fleet-peers is "a b=127.0.0.1:1"; want a name that no other has, of letters, digits, dots, underscores and hyphens, =, and host:port, as in a=10.0.0.1:8349`:   {"-fleet", "f", "-node", "a", "-fleet-peers", "a=127.0.0.1:2,a b=127.0.0.1:1"},
		"-fleet-engine is raft; want etcd or nats":                                                                                                          {"-fleet", "f", "-node", "a", "-fleet-peers", "a=127.0.0.1:2", "-fleet-engine", "raft"},
		"-fleet-port is 2; want a port from 0 to 65535, and not that in -fleet-peers":                                                                       {"-fleet", "f", "-node", "a", "-fleet-peers", "a=127.0.0.1:2", "-fleet-port", "2"},
		"-fleet-port means nothing beside -fleet-log: the machines need one port only":                                                                      {"-fleet", "f", "-node", "a", "-fleet-peers", "a=127.0.0.1:2", "-fleet-port", "3", "-fleet-log", "http://127.0.0.1:4"},
		`-fleet-log is "http://127.0.0.1:4"; want the URL of a server for its clients, as in tls://10.0.0.9:4222, or with ?monitor=PORT behind it`:          {"-fleet", "f", "-node", "a", "-fleet-peers", "a=127.0.0.1:2", "-fleet-engine", "nats", "-fleet-log", "http://127.0.0.1:4"},
		`-fleet-log is "tls://127.0.0.1:4?monitor=0"; want the URL of a server for its clients, as in tls://10.0.0.9:4222, or with ?monitor=PORT behind it`: {"-fleet", "f", "-node", "a", "-fleet-peers", "a=127.0.0.1:2", "-fleet-engine", "nats", "-fleet-log", "tls://127.0.0.1:4?monitor=0"},
		`-fleet-log is "nats://10.0.0.9:4?monitor=5"; others may read it on its way: want tls, or an address of loopback`:                                   {"-fleet", "f", "-node", "a", "-fleet-peers", "a=127.0.0.1:2", "-fleet-engine", "nats", "-fleet-log", "nats://127.0.0.1:3,nats://10.0.0.9:4?monitor=5"},
		`-fleet-log is "https://127.0.0.1:4?monitor=5"; want the URL of a server for its clients, as in https://10.0.0.9:2379`:                              {"-fleet", "f", "-node", "a", "-fleet-peers", "a=127.0.0.1:2", "-fleet-log", "https://127.0.0.1:4?monitor=5"},
		"-fleet is d/e; want a name of letters, digits, dots, underscores and hyphens":                                                                      {"-fleet", "d/e", "-node", "a", "-fleet-peers", "a=127.0.0.1:2"},
		"-fleet-engine needs -fleet":                               {"-fleet-engine", "nats"},
		"-client-ca needs -tls-cert and -tls-key":                  {"-client-ca", "nofile"},
		"-tls-cert and -tls-key: want both":                        {"-tls-key", "key"},
		"-dir is serve_test.go; want a folder, and this is a file": {"-dir", "serve_test.go"},
	} {
		status, _, said := typing(t, append([]string{"serve", "-dir", "x"}, args...)...)
		assert.Equal(t, exitUsage, status, args)
		assert.Contains(t, said, "frontier: serve: "+want+"\n", args)
	}
}

func TestCommandsOfMachinesSayWhatTheyWant(t *testing.T) {
	t.Setenv("FRONTIER_DIR", "")
	for want, args := range map[string][]string{
		"which machine? Name its folder with -dir": {"drain"},
		"want NAME=HOST:PORT, or -remove NAME":     {"member", "-dir", "x", "e=0.0.0.0:8349"},
		"no machine of a fleet runs in":            {"member", "-dir", "x", "e=10.0.0.1:8349"},
	} {
		status, _, said := operate(t, args...)
		assert.Equal(t, exitUsage, status, args)
		assert.Contains(t, said, want)
	}
}

// A folder with a frontier of its own stays as it is.
func TestAFolderThatServedAloneIsNoMachines(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, manifest), nil, 0o600))
	status, _, said := typing(t, "serve", "-dir", dir, "-fleet", "f", "-node", "a", "-fleet-peers", "a=127.0.0.1:2")
	assert.Equal(t, exitUsage, status)
	assert.Contains(t, said, "frontier: serve: -dir is "+dir+"; it has a frontier of its own: export that, and import it into the fleet\n")
	all, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, all, 1)
}

// The folder of a machine stays with its engine.
func TestAFolderKnowsItsEngine(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "nats"), 0o700))
	status, _, said := typing(t, "serve", "-dir", dir, "-fleet", "f", "-node", "a", "-fleet-peers", "a=127.0.0.1:2")
	assert.Equal(t, exitUsage, status)
	assert.Contains(t, said, "frontier: serve: -fleet-engine is etcd; the folder "+dir+" belongs to a fleet with nats\n")
	status, _, said = typing(t, "serve", "-dir", dir)
	assert.Equal(t, exitUsage, status)
	assert.Contains(t, said, "is the folder of a machine of a fleet")
}

// The commands of docs/http.md and of README.md work, one after the other.
func TestTheCommandsOfThePages(t *testing.T) {
	for name, commands := range map[string]int{"docs/http.md": 4, "README.md": 3} {
		t.Run(name, func(t *testing.T) { typeCommands(t, name, commands) })
	}
}

func typeCommands(t *testing.T, name string, commands int) {
	for _, tool := range []string{"curl", "jq"} {
		if _, err := exec.LookPath(tool); err != nil {
			require.NotEqual(t, "true", os.Getenv("CI"), "CI needs %s", tool)
			t.Skip("there is no ", tool)
		}
	}
	page, err := os.ReadFile("../../" + name)
	require.NoError(t, err)
	base, stop, _ := serving(t, "-dir", filepath.Join(t.TempDir(), "state"))
	var script strings.Builder
	ran := 0
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "curl ") || strings.HasPrefix(line, "LEASE=") {
			script.WriteString(strings.ReplaceAll(line, "localhost:8348", base))
			ran++
		}
	}
	assert.Equal(t, commands, ran)
	out, err := exec.Command("bash", "-euo", "pipefail", "-c", script.String()).CombinedOutput()
	require.NoError(t, err, "%s: %s", &script, out)
	assert.NotContains(t, string(out), "problems/")
	_, text := request(t, "GET", base+"/v1/crawls/DEFAULT", "", "")
	assert.Contains(t, text, `"visited":1`)
	assert.Zero(t, stop())
}

// An import keeps no server from starting again, and what an operator adds without a name goes to DEFAULT.
func TestAServerAfterAnImport(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	base, stop, _ := serving(t, "-dir", dir, "-grpc", "off")
	header := `{"frontier":1,"time":"2026-11-25T22:53:42.010Z","key":"4391981e257a84dc4c439d0b16da7a97"}` + "\n"
	for _, line := range []string{`{"value":"urlfrontier/limit/x","data":"eHg="}`, `{"value":"next-crawl","data":"eHg="}`} {
		code, text := request(t, "POST", base+"/v1/import", header+line+"\n"+`{"end":2}`+"\n", "")
		assert.Equal(t, 400, code, text)
	}
	code, text := request(t, "DELETE", base+"/v1/crawls/DEFAULT?forget=true", "", "")
	assert.Equal(t, 200, code, text)
	assert.Zero(t, stop())

	base, stop, _ = serving(t, "-dir", dir)
	status, _, said := typing(t, "add", "-dir", dir, "http://b.example/")
	assert.Zero(t, status, said)
	code, text = request(t, "GET", base+"/v1/urls?url=http://b.example/", "", "")
	assert.Equal(t, 200, code, text)
	status, _, said = typing(t, "add", "-dir", dir, "-crawl", "news", "http://b.example/2")
	assert.Zero(t, status, said)
	code, text = request(t, "GET", base+"/v1/urls?crawl=news&url=http://b.example/2", "", "")
	assert.Equal(t, 200, code, text)
	assert.Zero(t, stop())
}
