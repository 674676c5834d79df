package spill_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill"
)

// A crawl whose disk was damaged continues with what can be read.
func ExampleRepair() {
	ctx := context.Background()
	tmp, err := os.MkdirTemp("", "repair")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(tmp)
	dir, repaired := filepath.Join(tmp, "store"), filepath.Join(tmp, "repaired")

	db, err := spill.Open(dir, spill.Options{})
	if err != nil {
		log.Fatal(err)
	}
	f, err := frontier.Open(ctx, frontier.Options{Spill: db})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := f.Add(ctx, frontier.Entry{URL: "http://a.example/"}); err != nil {
		log.Fatal(err)
	}
	if err := errors.Join(f.Close(), db.Close()); err != nil {
		log.Fatal(err)
	}
	// Something bad happens.
	if err := os.Truncate(filepath.Join(dir, "MANIFEST"), 10); err != nil {
		log.Fatal(err)
	}

	_, err = spill.Open(dir, spill.Options{})
	if damage, ok := errors.AsType[*frontier.CorruptError](err); ok {
		fmt.Println("damaged:", damage.File)
		report, err := spill.Repair(ctx, dir, repaired, spill.Options{})
		if err != nil {
			log.Fatal(err)
		}
		for _, l := range report.Lost {
			fmt.Println("not readable:", l.What, l.File)
		}
	}
	db, err = spill.Open(repaired, spill.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	f, err = frontier.Open(ctx, frontier.Options{Spill: db})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	fmt.Println("waiting:", f.Stats().Waiting)
	// Output:
	// damaged: MANIFEST
	// not readable: file MANIFEST
	// waiting: 1
}
