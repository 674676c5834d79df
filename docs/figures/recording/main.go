// Command recording records a crawl that is killed with kill -9 and resumed, in two terminals of
// tmux, and writes what they showed as a picture that moves. The sites are on loopback.
//
//	go run ./docs/figures/recording docs/figures/resume.svg
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: recording FILE.svg")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	svg, err := record(ctx)
	if err == nil {
		err = os.WriteFile(os.Args[1], []byte(svg), 0o644)
	}
	if err != nil {
		log.Fatal("recording: ", err)
	}
}

// The terminals: the upper one crawls, and the lower one kills.
const (
	columns   = 96
	upperRows = 11
	lowerRows = 8
	patience  = 2 * time.Minute
)

// record carries the story out and returns the picture.
func record(ctx context.Context) (svg string, err error) {
	dir, err := os.MkdirTemp("", "rec")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(dir, "bin", "frontier"), "./cmd/frontier").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	asked, err := os.Create(filepath.Join(dir, "asked"))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, asked.Close()) }()
	sites := httptest.NewServer(page(asked))
	defer sites.Close()
	config := fmt.Sprintf("seeds = ['http://news.example/1', 'http://shop.example/1', 'http://wiki.example/1']\nresolve = ['*.example=%s']\n"+
		"no-groups = true\npage = 'off'\ndelay = '5ms'\ncontact = 'https://me.example/bot'\n", sites.Listener.Addr())
	if err := os.WriteFile(filepath.Join(dir, "crawl.toml"), []byte(config), 0o600); err != nil {
		return "", err
	}
	r := &recorder{ctx: ctx, dir: dir, began: time.Now()}
	defer func() { err = errors.Join(err, r.tmux("kill-server")) }()
	for name, rows := range map[string]int{"upper": upperRows, "lower": lowerRows} {
		if err := r.tmux("new-session", "-d", "-s", name, "-x", fmt.Sprint(columns), "-y", fmt.Sprint(rows), "-c", dir,
			"env", "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"), "LC_ALL=C.UTF-8", "PS1=$ ", "bash", "--norc", "--noprofile"); err != nil {
			return "", err
		}
	}
	for _, step := range []func() error{
		r.shows("upper", `^\$`), r.shows("lower", `^\$`),
		r.types("upper", "frontier crawl -dir state -config crawl.toml"),
		r.shows("upper", `running  1.[0-9]{3} pages`),
		r.kills,
		r.shows("upper", `Killed[^$]*\n\$`), r.rests(time.Second),
		r.types("lower", "sort -u asked | wc -l      # pages that the sites were asked for"),
		r.shows("lower", `for\n\d+\n`), r.rests(time.Second),
		r.types("upper", "frontier resume state"),
		r.shows("upper", `nothing is left to crawl[^$]*\n\$`), r.rests(time.Second),
		r.types("lower", "sort -u asked | wc -l      # all: each of the three has 1000"),
		r.shows("lower", `1000\n\d+\n`), r.rests(time.Second),
		r.types("lower", "sort asked | uniq -d | wc -l   # asked for twice: under way at the kill"),
		r.shows("lower", `kill\n\d+\n`),
	} {
		if err := step(); err != nil {
			return "", fmt.Errorf("%w; the terminals show:\n%s\n---\n%s", err, r.last["upper"], r.last["lower"])
		}
	}
	return draw(r.frames), nil
}

// pages is the number of pages of each site.
const pages = 1000

// page answers for all sites, and records which pages are requested: each links to some others.
func page(asked io.Writer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		if err != nil || n < 1 || n > pages {
			http.NotFound(w, r)
			return
		}
		fmt.Fprintf(asked, "%s%s\n", r.Host, r.URL.Path)
		w.Header().Set("Content-Type", "text/html")
		for _, to := range []int{2 * n, 2*n + 1, n + 1} {
			if to <= pages {
				fmt.Fprintf(w, "<a href=/%d>%d</a>", to, to)
			}
		}
	}
}

// recorder drives two terminals, and records each change on them.
type recorder struct {
	ctx    context.Context
	dir    string
	began  time.Time
	last   map[string]string
	frames []frame
}

// frame is the content of the terminals from a moment on.
type frame struct {
	at           time.Duration
	upper, lower string
}

func (r *recorder) tmux(args ...string) error {
	_, err := r.output(args...)
	return err
}

func (r *recorder) output(args ...string) (string, error) {
	out, err := exec.Command("tmux", append([]string{"-S", filepath.Join(r.dir, "tmux"), "-f", os.DevNull}, args...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("tmux %s: %w: %s", args[0], err, out)
	}
	return string(out), nil
}

// look adds a frame if something has changed.
func (r *recorder) look() error {
	f := frame{at: time.Since(r.began)}
	for name, s := range map[string]*string{"upper": &f.upper, "lower": &f.lower} {
		out, err := r.output("capture-pane", "-e", "-p", "-t", name)
		if err != nil {
			return err
		}
		*s = out
	}
	r.last = map[string]string{"upper": f.upper, "lower": f.lower}
	if n := len(r.frames); n == 0 || r.frames[n-1].upper != f.upper || r.frames[n-1].lower != f.lower {
		r.frames = append(r.frames, f)
	}
	return nil
}

// wait looks again and again until something is so.
func (r *recorder) wait(until func() bool) error {
	for end := time.Now().Add(patience); ; {
		if err := r.look(); err != nil || until() {
			return err
		}
		switch {
		case r.ctx.Err() != nil:
			return r.ctx.Err()
		case time.Now().After(end):
			return errors.New("waited in vain")
		}
		time.Sleep(80 * time.Millisecond)
	}
}

// words are what is typed at once.
var words = regexp.MustCompile(`\S+ *`)

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

// shows waits until a terminal shows a pattern.
func (r *recorder) shows(name, pattern string) func() error {
	return func() error {
		p := regexp.MustCompile(pattern)
		return r.wait(func() bool { return p.MatchString(escapes.ReplaceAllString(r.last[name], "")) })
	}
}

// rests lets the viewer read.
func (r *recorder) rests(d time.Duration) func() error {
	return func() error {
		end := time.Now().Add(d)
		return r.wait(func() bool { return time.Now().After(end) })
	}
}

// kills kills what runs in the upper terminal, from the lower one.
func (r *recorder) kills() error {
	shell, err := r.output("display-message", "-p", "-t", "upper", "#{pane_pid}")
	if err != nil {
		return err
	}
	crawl, err := exec.Command("pgrep", "-P", strings.TrimSpace(shell)).Output()
	if err != nil {
		return fmt.Errorf("the crawl's process: %w", err)
	}
	return r.types("lower", "kill -9 "+strings.TrimSpace(string(crawl)))()
}

// types types a command, word by word.
func (r *recorder) types(name, command string) func() error {
	return func() error {
		for _, word := range words.FindAllString(command, -1) {
			if err := r.tmux("send-keys", "-t", name, "-l", "--", word); err != nil {
				return err
			}
			if err := r.rests(150 * time.Millisecond)(); err != nil {
				return err
			}
		}
		if err := r.rests(400 * time.Millisecond)(); err != nil {
			return err
		}
		return r.tmux("send-keys", "-t", name, "Enter")
	}
}
