// This file reads listings: MLSD (RFC 3659), and LIST, for which there is no standard,
// as Unix, DOS and EPLF servers write it.

package ftp

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// entry is a line of a listing.
type entry struct {
	name   string
	folder bool
	size   int64     // of a file; -1: not known
	time   time.Time // zero: not known
}

// parseLine parses a line. It returns false for a line that it does not understand, and an entry without
// a name for a line that describes no file.
func parseLine(line string) (entry, bool) {
	if line == "" || strings.HasPrefix(line, "total ") {
		return entry{}, true
	}
	for _, parse := range []func(string) (entry, bool){parseFacts, parseUnix, parseDOS, parseEPLF} {
		if e, ok := parse(line); ok {
			if e.name == "." || e.name == ".." || strings.ContainsAny(e.name, "/\r\x00") {
				e.name = ""
			}
			return e, true
		}
	}
	return entry{}, false
}

// parseFacts reads "type=file;size=3; name".
func parseFacts(line string) (entry, bool) {
	facts, name, ok := strings.Cut(line, " ")
	if !ok || facts != "" && (!strings.HasSuffix(facts, ";") || !strings.Contains(facts, "=")) {
		return entry{}, false
	}
	e := entry{name: name, size: -1}
	for fact := range strings.SplitSeq(strings.TrimSuffix(facts, ";"), ";") {
		key, value, _ := strings.Cut(fact, "=")
		switch strings.ToLower(key) {
		case "type":
			switch strings.ToLower(value) {
			case "dir":
				e.folder = true
			case "cdir", "pdir":
				e.name = ""
			}
		case "size":
			e.size = sizeOf(value)
		case "modify":
			e.time, _ = timeOf(value)
		}
	}
	return e, true
}

// What Unix servers write after permissions, links, owner and group: the size; the
// month in any language and the day, or the other way round; a time or a year. Or
// date and time, as ISO has them.
var (
	unixLine = regexp.MustCompile(`^([-dlbcps])[-a-zA-Z]{9}\S*\s.*?\s?([0-9]+)\s+(?:(?:[^\s0-9]\S*\s+[0-9]{1,2}|[0-9]{1,2}\.?\s+[^\s0-9]\S*)\s+(?:[0-9]{1,2}:[0-9]{2}|[12][0-9]{3})|[0-9]{4}-[0-9]{2}-[0-9]{2}\s+[0-9]{2}:[0-9]{2}) (.+)$`)
	dosLine  = regexp.MustCompile(`^[0-9]{2,4}-[0-9]{2}-[0-9]{2,4}\s+[0-9]{2}:[0-9]{2}\s?(?:[AP]M)?\s+(<DIR>|[0-9,]+)\s+(.+)$`)
)

// parseUnix reads "-rw-r--r-- 1 owner group 13 Jan 02 2024 name".
func parseUnix(line string) (entry, bool) {
	m := unixLine.FindStringSubmatch(line)
	if m == nil {
		return entry{}, false
	}
	e := entry{name: m[3], size: -1}
	switch m[1] {
	case "-":
		e.size = sizeOf(m[2])
	case "d":
		e.folder = true
	case "l":
		e.name, _, _ = strings.Cut(e.name, " -> ")
	default: // devices, pipes, sockets
		e.name = ""
	}
	return e, true
}

// parseDOS reads "01-02-24  03:04AM  13 name".
func parseDOS(line string) (entry, bool) {
	m := dosLine.FindStringSubmatch(line)
	if m == nil {
		return entry{}, false
	}
	if m[1] == "<DIR>" {
		return entry{name: m[2], folder: true}, true
	}
	return entry{name: m[2], size: sizeOf(strings.ReplaceAll(m[1], ",", ""))}, true
}

// parseEPLF reads "+i8388621.29609,m824255902,/,<tab>name".
func parseEPLF(line string) (entry, bool) {
	facts, name, ok := strings.Cut(line, "\t")
	if !ok || !strings.HasPrefix(facts, "+") {
		return entry{}, false
	}
	e := entry{name: name, size: -1}
	for fact := range strings.SplitSeq(facts[1:], ",") {
		switch {
		case fact == "/":
			e.folder = true
		case strings.HasPrefix(fact, "s"):
			e.size = sizeOf(fact[1:])
		}
	}
	return e, true
}

// sizeOf parses a size; -1 if s is not a size.
func sizeOf(s string) int64 {
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil {
		return -1
	}
	return int64(n)
}
