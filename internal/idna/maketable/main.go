// Command maketable writes table.gz, from which package idna works, into the directory it runs in.
//
// Each line is of one kind: "!" and a range of code points that no name may have; "=" and a code point,
// and what it becomes, decomposed; "c" and a class, with the code points of that combining class; "+"
// and a composite, with the two code points that it is made of. All numbers are hexadecimal.
package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"log"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"
)

func main() {
	var table bytes.Buffer
	mapped(&table)
	marks(&table)
	composites(&table)
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := z.Write(table.Bytes()); err != nil {
		log.Fatal(err)
	}
	if err := z.Close(); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile("table.gz", packed.Bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
}

const hangul, hangulEnd = 0xac00, 0xd7a3 // syllables, which are composed by rule

// mapped writes what becomes of each code point alone. Joiners and the order of
// right-to-left names are about more than one: they are not looked at.
func mapped(w *bytes.Buffer) {
	profile := idna.New(idna.MapForLookup(), idna.Transitional(false), idna.CheckJoiners(false), idna.StrictDomainName(true))
	from := rune(-1) // of the range refused
	for r := rune(utf8.RuneSelf); r <= utf8.MaxRune+1; r++ {
		s, err := "", error(nil)
		if r <= utf8.MaxRune {
			s, err = profile.ToUnicode("x" + string(r) + "y") // starters on both sides: the marks keep their order
		}
		if refused := r <= utf8.MaxRune && err != nil; refused {
			if from < 0 {
				from = r
			}
			continue
		} else if from >= 0 {
			fmt.Fprintf(w, "!%x %x\n", from, r-1)
			from = -1
		}
		if r > utf8.MaxRune || r >= hangul && r <= hangulEnd {
			continue
		}
		s = strings.TrimSuffix(strings.TrimPrefix(norm.NFD.String(s), "x"), "y")
		if s != string(r) {
			fmt.Fprintf(w, "=%x", r)
			for _, to := range s {
				fmt.Fprintf(w, " %x", to)
			}
			w.WriteByte('\n')
		}
	}
}

func marks(w *bytes.Buffer) {
	classes := map[uint8][]rune{}
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if class := norm.NFD.PropertiesString(string(r)).CCC(); class != 0 && norm.NFD.IsNormalString(string(r)) {
			classes[class] = append(classes[class], r)
		}
	}
	var order []uint8
	for class := range classes {
		order = append(order, class)
	}
	slices.Sort(order)
	for _, class := range order {
		fmt.Fprintf(w, "c%x", class)
		for _, r := range classes[class] {
			fmt.Fprintf(w, " %x", r)
		}
		w.WriteByte('\n')
	}
}

func composites(w *bytes.Buffer) {
	for r := rune(utf8.RuneSelf); r <= utf8.MaxRune; r++ {
		parts := []rune(norm.NFD.String(string(r)))
		if r >= hangul && r <= hangulEnd || len(parts) < 2 || norm.NFC.String(string(r)) != string(r) {
			continue
		}
		last := len(parts) - 1
		first := []rune(norm.NFC.String(string(parts[:last])))
		if len(first) != 1 {
			log.Fatalf("%x is not made of two", r)
		}
		fmt.Fprintf(w, "+%x %x %x\n", r, first[0], parts[last])
	}
}
