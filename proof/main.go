// Proof tries to make the frontier lose data, or break another promise:
//
//	go run ./proof                       # CI's share: each kind of try once, some minutes
//	go run ./proof -long 1h              # for an hour
//	go run ./proof -only model,kill      # some kinds; -h lists them
//	go run ./proof -replay model 4711    # what began with a seed, again
//
// It prints the table of docs/proof.md. For each failure it prints the command that repeats it. The
// exit status is 1 if anything failed. kinds.go lists the kinds of tries, and says how to add one.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second one kills
	os.Exit(proof(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// settings are the values of the flags.
type settings struct {
	long   time.Duration
	only   string
	seed   uint64
	replay string
	race   bool
	kinds  []kind
}

// proof returns the exit code: 1 if anything failed, 2 if it could not begin.
func proof(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	s, err := parse(args, kinds(), stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(stderr, "proof:", err)
		return 2
	}
	w, err := newWorkshop(s.race, stdout)
	if err != nil {
		fmt.Fprintln(stderr, "proof:", err)
		return 2
	}
	defer w.close()
	if s.replay != "" {
		err = w.replay(ctx, s.kinds[0], s.seed)
	} else {
		err = w.runAll(ctx, s)
	}
	if err != nil {
		fmt.Fprintln(stderr, "proof:", err)
		return 1
	}
	return 0
}

func parse(args []string, all []kind, stderr io.Writer) (settings, error) {
	var s settings
	fs := flag.NewFlagSet("proof", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.DurationVar(&s.long, "long", 0, "go on for so long; 0: one round of each kind, which is CI's share")
	fs.StringVar(&s.only, "only", "", "run only these kinds, separated by commas")
	fs.Uint64Var(&s.seed, "seed", 0, "seed of the first round's seeds; 0: a new one")
	fs.StringVar(&s.replay, "replay", "", "run one round of this kind again; the seed follows")
	fs.BoolVar(&s.race, "race", false, "with the race detector")
	fs.Usage = func() {
		fmt.Fprintln(stderr, "go run ./proof [flags], or go run ./proof -replay KIND SEED")
		fs.PrintDefaults()
		for _, k := range all {
			fmt.Fprintf(stderr, "  %-14s %s\n", k.name, k.what)
		}
	}
	if err := fs.Parse(args); err != nil {
		return s, err
	}
	s.seed = cmp.Or(s.seed, rand.Uint64N(1<<32))
	wanted, rest := s.only, fs.Args()
	if s.replay != "" {
		if len(rest) != 1 {
			return s, errors.New("-replay KIND wants one seed behind it")
		}
		seed, err := strconv.ParseUint(rest[0], 10, 64)
		if err != nil || seed == 0 {
			return s, fmt.Errorf("the seed is %q; want a number above 0", rest[0])
		}
		s.seed, wanted, rest = seed, s.replay, nil
	}
	if len(rest) > 0 {
		return s, fmt.Errorf("what is %q?", rest)
	}
	s.kinds = all
	if wanted == "" {
		return s, nil
	}
	s.kinds = nil
	for name := range strings.SplitSeq(wanted, ",") {
		k, ok := kindOf(all, name)
		if !ok {
			return s, fmt.Errorf("no kind is called %q; -h lists them", name)
		}
		s.kinds = append(s.kinds, k)
	}
	return s, nil
}

func kindOf(all []kind, name string) (kind, bool) {
	for _, k := range all {
		if k.name == name {
			return k, true
		}
	}
	return kind{}, false
}
