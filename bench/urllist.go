// This file reads a list of real URLs and stores it in two files, shuffled, so that it takes no
// memory that is measured.

package main

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/seed-7440039f/frontier"
)

// listInfo describes a list.
type listInfo struct {
	Lines      int
	Good       int
	Duplicates int
	Broken     int
	Faults     []string // of the first broken lines
}

const shownFaults = 10

func (l *listInfo) String() string {
	return fmt.Sprintf("%d lines: %d URLs, %d duplicates and %d broken lines left out", l.Lines, l.Good, l.Duplicates, l.Broken)
}

const (
	listText  = "urls.text"
	listIndex = "urls.index" // offsets in the text, 8 bytes each, in shuffled order, with lengths
)

// prepareList copies the good lines of a gzip list into folder dir.
func prepareList(name, dir string, seed uint64) (*listInfo, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(bufio.NewReaderSize(f, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("%s is no gzip file: %w", name, err)
	}
	out, err := os.Create(filepath.Join(dir, listText))
	if err != nil {
		return nil, err
	}
	defer out.Close()
	w := bufio.NewWriterSize(out, 1<<20)
	info, places, err := copyGood(z, w)
	if err != nil {
		return nil, fmt.Errorf("%s, after line %d: %w", name, info.Lines, err)
	}
	if info.Good == 0 {
		return nil, fmt.Errorf("%s has no good line; the first faults: %s", name, strings.Join(info.Faults, "; "))
	}
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
	index := make([]byte, 0, 8*len(places))
	for _, p := range places {
		index = binary.LittleEndian.AppendUint64(index, p)
	}
	return info, errors.Join(w.Flush(), out.Close(), os.WriteFile(filepath.Join(dir, listIndex), index, 0o600))
}

const lengthBits = 17 // a place is an offset and a length

// copyGood writes valid lines one after the other and returns their positions.
func copyGood(r io.Reader, w io.Writer) (*listInfo, []uint64, error) {
	info, seen := &listInfo{}, map[uint64]struct{}{}
	var places []uint64
	var offset uint64
	in := bufio.NewReaderSize(r, 1<<20)
	for {
		line, err := in.ReadString('\n')
		if err != nil && err != io.EOF {
			return info, nil, err
		}
		if line == "" {
			return info, places, nil
		}
		info.Lines++
		url := strings.TrimRight(line, "\r\n")
		if fault := lineFault(url); fault != nil {
			info.Broken++
			if len(info.Faults) < shownFaults {
				info.Faults = append(info.Faults, fmt.Sprintf("line %d %q: %v", info.Lines, url[:min(len(url), 80)], fault))
			}
			continue
		}
		h := hashOf(url)
		if _, known := seen[h]; known {
			info.Duplicates++
			continue
		}
		seen[h] = struct{}{}
		if _, err := io.WriteString(w, url); err != nil {
			return info, nil, err
		}
		info.Good++
		places = append(places, offset<<lengthBits|uint64(len(url)))
		offset += uint64(len(url))
	}
}

// lineFault is why a frontier would refuse a URL.
func lineFault(url string) error {
	if len(url) > frontier.MaxURL {
		return fmt.Errorf("longer than %d bytes", frontier.MaxURL)
	}
	_, err := frontier.HostName(url)
	return err
}

// list is a prepared list as a source. It has an end.
type list struct{ text, index []byte }

func openList(dir string) (*list, error) {
	text, err := mapFile(filepath.Join(dir, listText))
	if err != nil {
		return nil, err
	}
	index, err := mapFile(filepath.Join(dir, listIndex))
	return &list{text, index}, err
}

func (l *list) size() int { return len(l.index) / 8 }

func (l *list) appendURL(b []byte, i int) []byte {
	place := binary.LittleEndian.Uint64(l.index[8*i:])
	from, n := place>>lengthBits, place&(1<<lengthBits-1)
	return append(b, l.text[from:from+n]...)
}

func (l *list) appendFresh(b []byte, i int) []byte {
	b = l.appendURL(b, i%l.size())
	return strconv.AppendInt(append(b, "?fresh="...), int64(i), 10)
}
