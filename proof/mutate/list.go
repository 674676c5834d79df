// This file reads the list of mutations, and applies them.

package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// mutations.txt is the list. An entry is
//
//	=== NAME
//	breaks  the promise that does not hold any more
//	file    path from the root of the module
//	tests   PACKAGE PATTERN   that should notice, by tests' names; a line for each package
//	--
//	the old text, whole lines that occur exactly once in the file
//	++
//	the new text, which may be empty
//
// Lines before the first entry, and lines that begin with # between entries, say
// something to the reader.
//
//go:embed mutations.txt
var listed string

// mutation is one way to break the code.
type mutation struct {
	name, breaks, file string
	tests              []suite
	old, new           string
}

// suite is tests of a package.
type suite struct{ pkg, pattern string }

var entry = regexp.MustCompile(`(?s)^(.+?)\nbreaks +(.+?)\nfile +(\S+)\n((?:tests +\S+ \S+\n)+)--\n(.+?\n)\+\+\n(.*)$`)

func readList(text string) ([]mutation, error) {
	var all []mutation
	names := map[string]bool{}
	for i, x := range strings.Split("\n"+text, "\n=== ") {
		if i == 0 {
			continue
		}
		for { // remarks, which belong to the next entry
			x = strings.TrimRight(x, "\n") + "\n"
			last := strings.LastIndexByte(x[:len(x)-1], '\n') + 1
			if x[last] != '#' {
				break
			}
			x = x[:last]
		}
		f := entry.FindStringSubmatch(x)
		if f == nil {
			return nil, fmt.Errorf("mutation %d is malformed:\n%s", i, x)
		}
		m := mutation{name: f[1], breaks: f[2], file: f[3], old: f[5], new: f[6]}
		for line := range strings.Lines(f[4]) {
			x := strings.Fields(line)
			if _, err := regexp.Compile(x[2]); err != nil {
				return nil, fmt.Errorf("%s: %w", m.name, err)
			}
			m.tests = append(m.tests, suite{x[1], x[2]})
		}
		if names[m.name] {
			return nil, fmt.Errorf("two mutations are called %s", m.name)
		}
		names[m.name] = true
		all = append(all, m)
	}
	return all, nil
}

// apply returns the mutated file. The old text must be there once.
func (m *mutation) apply(root string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(m.file)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.name, err)
	}
	text = append([]byte("\n"), text...) // so that lines begin behind a newline
	old := []byte("\n" + m.old)
	if n := bytes.Count(text, old); n != 1 {
		return nil, fmt.Errorf("%s: its old text is %d times in %s; want once", m.name, n, m.file)
	}
	return bytes.Replace(text, old, []byte("\n"+m.new), 1)[1:], nil
}
