// This file runs a scenario in a separate process, so that no scenario is affected by the memory of
// another, and one can be killed.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// childArg as the first argument makes this program run one job, which it reads
// from standard input, and write its results to standard output.
const childArg = "child"

// job is the task of a child process.
type job struct {
	Scenario string
	Probe    bool
	Config   config
	Work     string
}

// reply is its answer.
type reply struct {
	Results results
	Err     string
}

// startChild starts a process. It ends with ctx, and with this process, which closes its standard
// input.
func startChild(ctx context.Context, j job, stdout io.Writer) (*exec.Cmd, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, exe, childArg)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	cmd.Stdout, cmd.Stderr = stdout, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if err := json.NewEncoder(in).Encode(j); err != nil {
		return nil, errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	return cmd, nil // in stays open until Wait
}

// inChild runs a job and returns its measures, even if it failed.
func inChild(ctx context.Context, j job) (results, error) {
	out, err := os.CreateTemp(j.Work, "reply-*")
	if err != nil {
		return results{}, err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	cmd, err := startChild(ctx, j, out)
	if err != nil {
		return results{}, err
	}
	ended := cmd.Wait()
	if _, err := out.Seek(0, io.SeekStart); err != nil {
		return results{}, err
	}
	var re reply
	if err := json.NewDecoder(out).Decode(&re); err != nil {
		return results{}, fmt.Errorf("the process of %s ended without results: %w", j.Scenario, errors.Join(ended, err))
	}
	if re.Err != "" {
		return re.Results, fmt.Errorf("%s: %s", j.Scenario, re.Err)
	}
	return re.Results, nil
}

// childMain is the child's side.
func childMain(stdin io.Reader, stdout io.Writer) int {
	// A terminal sends Ctrl-C to all processes, and the parent sends it once more.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	in := json.NewDecoder(stdin)
	var j job
	if err := in.Decode(&j); err != nil {
		fmt.Fprintln(os.Stderr, "bench child:", err)
		return 1
	}
	go func() {
		var more struct{}
		if in.Decode(&more) != nil {
			os.Exit(1) // its parent has ended: the results are not needed
		}
	}()
	r := &run{ctx: ctx, cfg: j.Config, name: j.Scenario, work: j.Work}
	var re reply
	if err := r.do(j); err != nil {
		re.Err = err.Error()
	}
	re.Results = r.out
	if err := json.NewEncoder(stdout).Encode(re); err != nil {
		fmt.Fprintln(os.Stderr, "bench child:", err)
		return 1
	}
	return 0
}

// do runs the job's function with a separate folder.
func (r *run) do(j job) error {
	var fn func(r *run) error
	if j.Probe {
		r.name, fn = "probe", probes[j.Scenario]
	} else {
		fn = helpers[j.Scenario]
		for _, s := range scenarios {
			if s.name == j.Scenario {
				fn = s.run
			}
		}
	}
	if fn == nil {
		return fmt.Errorf("no scenario %q", j.Scenario)
	}
	if err := os.MkdirAll(r.dir(), 0o700); err != nil {
		return err
	}
	if !j.Probe {
		r.measure("load", loadAverage(), "")
	}
	return errors.Join(fn(r), os.RemoveAll(r.dir()))
}
