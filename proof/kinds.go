// This file lists the kinds of tries.

package main

// kind is a way of trying to make the frontier break a promise.
//
// To add one, write a test that takes its randomness from a seed flag, and that counts its tries
// with trycount.Of(t) (internal/lab/trycount); add it to kinds; check `go run ./proof -only NAME`,
// and that `go run ./proof -replay NAME SEED` repeats it. Add the printed row to docs/proof.md.
type kind struct {
	name string // for -only and -replay
	what string // description of a try, for the table
	pkg  string // folder of the tests, from the root of the module
	run  string // pattern of the tests' names

	program string // that is run instead of tests, with the flags

	// seed is the flag for the seed. A kind without one does the same in each round, so a long run
	// includes only one round of it.
	seed string

	// ci are the flags in CI and in the first round of a long run; further rounds use the flags
	// long. With the same seed both must begin with the same tries, since a replay uses long.
	ci, long []string

	share int // of the time of a long run; 0 means 1
}

const (
	rapidSeed = "rapid.seed"
	ownSeed   = "frontier.seed"
)

func kinds() []kind {
	return []kind{
		{
			name: "model", what: "random operations beside a naive model, invariants checked after each step",
			pkg: "test/model", run: "^TestModel(InMemory|OnDisk)$", seed: rapidSeed,
			ci: []string{"-rapid.checks=1000"}, long: []string{"-rapid.checks=10000"}, share: 3,
		},
		{
			name: "lanes", what: "the same for hosts and groups with several lanes",
			pkg: "test/model", run: "^TestModelOfLanes", seed: rapidSeed,
			ci: []string{"-rapid.checks=1000"}, long: []string{"-rapid.checks=10000"},
		},
		{
			name: "lock", what: "sequences as in the model; everything the frontier calls checks whether the lock is held",
			pkg: "test/model", run: "^TestLockIsNotHeldOverIOAndCallbacks$", seed: rapidSeed,
			ci: []string{"-rapid.checks=200"}, long: []string{"-rapid.checks=2000"},
		},
		{
			name: "metamorphic", what: "random crawls under random options, which must end like the same crawl in memory",
			pkg: "test/model", run: "^TestMetamorphic$", seed: rapidSeed,
			ci: []string{"-rapid.checks=300"}, long: []string{"-rapid.checks=3000"}, share: 2,
		},
		{
			name: "cancelled", what: "goroutines whose calls are cancelled at random moments",
			pkg: "test/conformance", run: "^TestThousandsOfCallsThatAreCancelled$", seed: ownSeed,
		},
		{
			name: "linearizable", what: "histories of simultaneous calls, for which a checker must find an order",
			pkg: "test/model", run: "^TestLinearizable$", seed: ownSeed, long: []string{"-frontier.long"},
		},
		{
			name: "faults", what: "the n-th access to a store fails or takes seconds, for each n",
			pkg: "test/durability", run: "^(TestFailureOfEach(DiskCall|CallOfTheSpill)|TestFaultsMeetACrowd)$", seed: ownSeed,
			ci: []string{"-frontier.each-fault"}, long: []string{"-frontier.each-fault"},
		},
		{
			name: "close", what: "Close at random moments beside everything else, on slow, failing and stuck disks",
			pkg: "test/conformance", run: "^TestCloseBesideEverything$", seed: ownSeed,
			ci: []string{"-frontier.closes=60"}, long: []string{"-frontier.closes=300"},
		},
		{
			name: "kill", what: "kills of a process under load at random moments",
			pkg: "test/durability", run: "^TestKill$", seed: ownSeed,
			ci: []string{"-frontier.crash-rounds=8"}, long: []string{"-frontier.crash-rounds=40"}, share: 3,
		},
		{
			name: "controls", what: "kills of a process between controls and contacts",
			pkg: "test/durability", run: "^TestKillAfterControls$", seed: ownSeed,
			ci: []string{"-frontier.controls-rounds=20"}, long: []string{"-frontier.controls-rounds=100"},
		},
		{
			name: "damage", what: "damage to files of a store: flipped, zeroed and garbled bytes, cut and removed files",
			pkg: "spill", run: "^TestFolderDamage$", seed: ownSeed,
			ci: []string{"-frontier.damages=100"}, long: []string{"-frontier.damages=1000"}, share: 2,
		},
		{
			name: "repair", what: "repairs of damaged stores: undamaged data is there, the rest is reported",
			pkg: "spill", run: "^TestRepair$", seed: ownSeed,
			ci: []string{"-frontier.repairs=60"}, long: []string{"-frontier.repairs=600"},
		},
		{
			name: "full", what: "volumes that are really full, under load",
			pkg: "test/durability", run: "^TestFullDisk$", seed: ownSeed,
			ci: []string{"-frontier.full-rounds=4"}, long: []string{"-frontier.full-rounds=20"},
		},
		{
			name: "power", what: "losses of power under load, with a torn and reordered tail",
			pkg: "test/durability", run: "^TestPowerCut$", seed: ownSeed,
			ci: []string{"-frontier.power-cuts=12"}, long: []string{"-frontier.power-cuts=60"}, share: 2,
		},
		{
			name: "power-unsynced", what: "the same without Sync: everything that had reached the medium is there",
			pkg: "test/durability", run: "^TestPowerCutWithoutSync$", seed: ownSeed,
			ci: []string{"-frontier.power-cuts=8"}, long: []string{"-frontier.power-cuts=40"}, share: 2,
		},
		{
			name: "power-moment", what: "losses of power on plain ext4: what is left is the state after one call",
			pkg: "test/durability", run: "^TestPowerCutLeavesOneMoment$", seed: ownSeed,
			ci: []string{"-frontier.moment-cuts=2"}, long: []string{"-frontier.moment-cuts=20"}, share: 2,
		},
		{
			name: "below", what: "seconds without descriptors, a writable folder or a free byte: the process survives",
			pkg: "test/durability", run: "^(TestWithoutDescriptors|TestFoldersThatCannotBeWritten|TestLastByte)$", seed: ownSeed,
			ci: []string{"-frontier.below-episodes=4"}, long: []string{"-frontier.below-episodes=40"},
		},
		{
			name: "clocks", what: "crawls on a wall clock that jumps, stops or starts wrong: no host too early",
			pkg: "test/politeness", run: "^TestClocksThatJump$", seed: ownSeed,
			ci: []string{"-frontier.clock-rounds=400"}, long: []string{"-frontier.clock-rounds=4000"},
		},
		{
			name: "mutations", what: "mutations of the code, each of which a test must catch",
			program: "./proof/mutate", ci: []string{"-share", "1/32", "-named"},
		},
	}
}
