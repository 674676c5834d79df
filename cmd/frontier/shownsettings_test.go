// This file tests what the page shows of a crawl's settings.

package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/console"
)

// The page shows the options that were given, and no secret.
func TestSettingsOnThePage(t *testing.T) {
	s := newSettings()
	for name, value := range map[string]string{"page-token": "hunter2", "proxy": "http://me:hunter2@proxy.example:1", "delay": "3s", seedsKey: "http://a.example/"} {
		s.find(name).typed = []string{value}
	}
	require.NoError(t, s.judge(t.Context()))
	all := s.shownSettings()
	assert.Contains(t, all, console.Setting{Name: "workers", Value: "16"})
	assert.Contains(t, all, console.Setting{Name: "delay", Value: "3s"})
	for _, x := range all {
		assert.NotContains(t, x.Value, "hunter2", x.Name)
		assert.NotEqual(t, "timeout", x.Name, "it was not given")
	}
}
