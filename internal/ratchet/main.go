// Ratchet measures how large the house is, in numbers that may only fall:
//
//	go run ./internal/ratchet [-calls] [-update]
//
// Ratchet.txt has each number. A test fails if one has grown, or if one has fallen far below what
// the file says: -update writes it. With -calls it also builds the root with counters, and counts
// the files that execute in one call.
package main

import (
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

//go:embed ratchet.txt
var kept string

func main() {
	log.SetFlags(0)
	calls := flag.Bool("calls", false, "count the files that execute in one call, too")
	update := flag.Bool("update", false, "write the numbers that have fallen into ratchet.txt")
	flag.Parse()
	now, err := measure(".")
	if err == nil && *calls {
		err = measureCalls(now)
	}
	if err != nil {
		log.Fatal("ratchet: ", err)
	}
	text, grown := judge(kept, now)
	fmt.Print(text)
	if *update {
		err = os.WriteFile(filepath.Join("internal", "ratchet", "ratchet.txt"), []byte(text), 0o644)
	}
	if err != nil || len(grown) > 0 {
		log.Fatal("ratchet: ", errors.Join(err, errors.New(strings.Join(grown, "; "))))
	}
}

// judge returns the lines of was with the numbers that have fallen, and says which have grown. Calls
// may be missing.
func judge(was string, now map[string]int) (text string, grown []string) {
	var b strings.Builder
	for line := range strings.Lines(was) {
		number, name, ok := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.Atoi(number)
		if !ok || err != nil {
			b.WriteString(line) // a comment
			continue
		}
		name = strings.TrimSpace(name)
		m, ok := now[name]
		switch {
		case !ok && strings.HasPrefix(name, executed):
		case !ok:
			grown = append(grown, "nothing measures "+name)
		case m > n:
			grown = append(grown, fmt.Sprintf("%s: %d, was %d", name, m, n))
		default:
			n = m
		}
		fmt.Fprintf(&b, "%7d  %s\n", n, name)
	}
	return b.String(), grown
}
