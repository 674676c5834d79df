// This file is for systems where a restart of the machine cannot be detected: nothing is recorded.

//go:build !linux

package kv

import "os"

func mapPage(*os.File, int) ([]byte, error) { return nil, nil }

func unmapPage([]byte) error { return nil }

func bootID(string) (id [bootLen]byte, ok bool) { return id, false }
