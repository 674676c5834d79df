package main

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLinesAreJudgedByTheirWorstFigure(t *testing.T) {
	rep := &report{Config: &config{URLs: 10_000_000}, Measures: []measure{
		{Scenario: "ingest", Name: "add.rate", Value: 300e3, Unit: "/s"}, // below must, but the ratio decides
		{Scenario: "probe", Name: "badger.rate", Value: 1e6, Unit: "/s"},
		{Scenario: "sync", Name: "16x100.rate", Value: 600e3, Unit: "/s"},
		{Scenario: "sync", Name: "256x1.rate", Value: 70e3, Unit: "/s"},
		{Scenario: "ingest", Name: "add.max", Value: 180e3, Unit: "us"}, // the probe stalled for long, too
		{Scenario: "probe", Name: "badger.write.max", Value: 100e3, Unit: "us"},
		{Scenario: "ingest", Name: "anon.peak", Value: 0.9e9, Unit: "B"},
		{Scenario: "resume", Name: "reopen", Value: 1.2, Unit: "s"},
	}}
	lines := rep.judge()
	require.Equal(t, "aim", lines[0].Verdict)
	require.Equal(t, "300 k/s, 0.3 of badger (aim)", lines[0].Measured)
	require.Equal(t, "must", lines[1].Verdict)
	require.Equal(t, "not run", lines[2].Verdict)
	require.Equal(t, "must", lines[6].Verdict)
	require.Equal(t, "MISSED", lines[7].Verdict)
	require.Equal(t, "not run", lines[8].Verdict)
	require.Equal(t, "aim", lines[11].Verdict)
	require.False(t, *rep.Measures[6].OK)
	require.Equal(t, 0.8e9, *rep.Measures[6].Must)
	require.Equal(t, 200e3, *rep.Measures[4].Must)
	require.True(t, *rep.Measures[7].OK)

	rep.Config.URLs = 100_000_000
	lines = rep.judge()
	require.Equal(t, "not run", lines[7].Verdict)
	require.Equal(t, "aim", lines[8].Verdict)
}

func TestFiguresAreReadable(t *testing.T) {
	for want, got := range map[string]string{
		"512 k/s": show(512_345, "/s"), "1.23 M/s": show(1_230_000, "/s"), "1.50 s": show(1.5e6, "us"), "22.4 ms": show(22_400, "us"),
		"0.78 us": show(0.78, "us"), "470 MB": show(470e6, "B"), "71.7 B": show(71.7, "B"), "28.7 kB": show(28_700, "B"),
		"23.6 GB/s": show(23.6e9, "B/s"), "-3.00 MB an hour": show(-3.002e6, "B/h"), "99.5 %": show(99.5, "%"), "0": show(0, ""),
	} {
		require.Equal(t, want, got)
	}
}

func TestSizes(t *testing.T) {
	for s, want := range map[string]int64{"": 0, "512MiB": 512 << 20, "1.5 GiB": 3 << 29, "2GB": 2e9, "4096": 4096, "1kB": 1000} {
		got, err := parseSize(s)
		require.NoError(t, err)
		require.Equal(t, want, got, s)
	}
	for _, s := range []string{"MiB", "-1GiB", "x", "1TiB", "NaN"} {
		_, err := parseSize(s)
		require.Error(t, err, s)
	}
}

func TestSlopeIsThatOfTheLine(t *testing.T) {
	slope, fault, mean := regression([]float64{0, 1, 2, 3}, []float64{5, 7, 9, 11})
	require.InDelta(t, 2, slope, 1e-9)
	require.InDelta(t, 0, fault, 1e-9)
	require.InDelta(t, 8, mean, 1e-9)
	_, fault, _ = regression([]float64{0, 1, 2, 3}, []float64{5, 6, 5, 6})
	require.Greater(t, fault, 0.1)
	require.False(t, math.IsNaN(fault))
}
