// This file says what a node knows of its fleet: as a document, for people, and as figures. All times are
// spans by this node's clock.

package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier/metrics"
)

// State is what a node knows of its fleet. Spans are in seconds.
type State struct {
	Node       string           `json:"node"`      // that says this
	Confirmed  bool             `json:"confirmed"` // it has heard of the others lately enough to hand out
	Nodes      []NodeState      `json:"nodes"`
	Partitions []PartitionState `json:"partitions"`
}

// NodeState is what is known of a node.
type NodeState struct {
	Node     string  `json:"node"`
	Address  string  `json:"address"`
	Alive    bool    `json:"alive"`    // its session has not ended
	Seen     float64 `json:"seen_s"`   // since it was last heard of, or was seen to have ended
	Draining bool    `json:"draining"` // it takes no partition
	Clock    *Clock  `json:"clock,omitempty"`
}

// Clock is by how much another node's clock was ahead when they were compared, and how far from that it may be.
type Clock struct {
	Ahead  float64 `json:"ahead_s"`
	Within float64 `json:"within_s"`
}

// PartitionState is what is known of a partition.
type PartitionState struct {
	Partition int        `json:"partition"`
	State     string     `json:"state"` // free, opening, held or open
	Owner     string     `json:"owner,omitempty"`
	Epoch     uint64     `json:"epoch,omitempty"`
	Held      float64    `json:"held_s,omitempty"` // until leases of earlier owners have ended; if open, they may have
	Log       *LogState  `json:"log,omitempty"`    // only its owner knows
	Copy      *CopyState `json:"copy,omitempty"`
}

// LogState is what has been logged since the latest copy: the next owner applies it.
type LogState struct {
	Changes uint64 `json:"changes"`
	Bytes   int64  `json:"bytes"`
	Cut     bool   `json:"cut"` // what was logged before that copy is gone
}

// CopyState is the latest copy of a partition.
type CopyState struct {
	Change uint64   `json:"change"` // the last one that it has
	Age    float64  `json:"age_s"`  // at least
	Nodes  []string `json:"nodes"`  // that have it
}

// State returns what this node knows.
func (n *Node) State() State {
	n.mu.Lock()
	clocks := maps.Clone(n.clocks)
	n.mu.Unlock()
	_, ok := n.session.Load().right()
	s := State{Node: n.o.Node, Confirmed: ok, Nodes: []NodeState{}, Partitions: []PartitionState{}}
	all, _ := n.view.sessions()
	for _, m := range all {
		if m.Gone {
			continue
		}
		s.Nodes = append(s.Nodes, NodeState{m.Node, m.Address, !m.Dead, n.since(m.at), m.Leaving && !m.Dead, nil})
		if c, ok := clocks[m.Node]; ok {
			s.Nodes[len(s.Nodes)-1].Clock = &Clock{c.ahead.Seconds(), c.within.Seconds()}
		}
	}
	for p := range n.o.Partitions {
		s.Partitions = append(s.Partitions, n.partitionState(p, s.Nodes))
	}
	return s
}

// since is how long ago something was, in seconds.
func (n *Node) since(at time.Duration) float64 { return inSeconds(n.o.elapsed() - at) }

func inSeconds(d time.Duration) float64 { return float64(max(0, d).Milliseconds()) / 1000 }

func (n *Node) partitionState(p int, nodes []NodeState) PartitionState {
	s := PartitionState{Partition: p, State: "free"}
	var row partRow
	if e, ok := get(n.view, fmt.Sprint(partKey, p), &row); ok && !row.Released && !n.view.isDead(row.Session, e.Revision) {
		s.Owner, _, _ = strings.Cut(row.Session, "/")
		s.Held = inSeconds(e.at + row.Hold - n.o.elapsed())
		switch s.Epoch = cmp.Or(row.Epoch, e.Revision); {
		case !row.Open:
			s.State = "opening"
		case s.Held > 0 && !e.old:
			s.State = "held"
		default:
			s.State = "open"
		}
	}
	var made copyRow
	e, ok := get(n.view, fmt.Sprint(copyKey, p), &made)
	if ok {
		s.Copy = &CopyState{Change: made.Change, Age: n.since(e.at), Nodes: []string{}}
		if info, err := os.Stat(filepath.Join(n.o.Dir, copiesFolder, made.Name, listName)); err == nil { // it may be older than this process
			s.Copy.Age = max(s.Copy.Age, inSeconds(time.Since(info.ModTime())))
		}
		for _, node := range nodes {
			var has copyRow
			if _, ok := get(n.view, haveOf(p, node.Node), &has); ok && has.Name == made.Name {
				s.Copy.Nodes = append(s.Copy.Nodes, node.Node)
			}
		}
	}
	n.mu.Lock()
	l, cut := n.owned[p], n.cut[p]
	n.mu.Unlock()
	if l != nil {
		size, _, change := l.grown()
		s.Log = &LogState{Changes: change - min(change, made.Change), Bytes: size, Cut: ok && cut == e.Revision}
	}
	return s
}

// Lines describes a State for people, in cells that tabs separate.
func (s State) Lines() (lines []string) {
	span := func(s float64) string { return time.Duration(math.Round(s) * float64(time.Second)).String() }
	says := map[bool]string{true: "has heard of the others lately", false: "hands nothing out: it has not heard of the others for too long"}[s.Confirmed]
	lines = append(lines, fmt.Sprintf("fleet\tas node %s sees it, which %s", s.Node, says))
	for _, n := range s.Nodes {
		about := "ended"
		if n.Alive {
			about = "alive, heard of"
		}
		about += " " + span(n.Seen) + " ago"
		if n.Draining {
			about += ", takes no partition"
		}
		if n.Clock != nil {
			about += fmt.Sprintf(", clock ahead by %.3fs", math.Round(1000*n.Clock.Ahead)/1000+0) // no -0
		}
		lines = append(lines, fmt.Sprintf("node %s\t%s\t%s", n.Node, about, n.Address))
	}
	for _, p := range s.Partitions {
		about := p.State
		if p.Owner != "" {
			about += fmt.Sprintf(" at %s, epoch %d", p.Owner, p.Epoch)
		}
		if p.Held > 0 && p.State == "open" {
			about += ", hosts may wait for " + span(p.Held)
		} else if p.Held > 0 {
			about += ", for " + span(p.Held)
		}
		if p.Log != nil {
			about += fmt.Sprintf("\tlog: %d changes, %.1f MiB since the latest copy", p.Log.Changes, float64(p.Log.Bytes)/(1<<20))
		}
		lines = append(lines, fmt.Sprintf("partition %d\t%s", p.Partition, about))
		if p.Copy != nil {
			lines = append(lines, fmt.Sprintf("copy of %d\tto change %d, %s old\tat %s", p.Partition, p.Copy.Change, span(p.Copy.Age), strings.Join(p.Copy.Nodes, ", ")))
		}
	}
	return lines
}

// Figures is the metrics.Source of a node's State.
type Figures func() State

var (
	nodesAlive = metrics.Metric{Name: "frontier_fleet_nodes_alive", OTel: "frontier.fleet.node.alive", Kind: metrics.State, Unit: "{node}", Help: "Nodes of the fleet whose sessions have not ended, as this one sees it."}
	confirmed  = metrics.Metric{Name: "frontier_fleet_confirmed", OTel: "frontier.fleet.confirmed", Kind: metrics.State, Unit: "1", Help: "1 while this node may hand out what it owns; otherwise 0."}
	clockAhead = metrics.Metric{Name: "frontier_fleet_clock_ahead_seconds", OTel: "frontier.fleet.clock.ahead", Kind: metrics.State, Unit: "s", Label: "node", Help: "By how much another node's clock was ahead when they were compared."}
	held       = metrics.Metric{Name: "frontier_fleet_held_seconds", OTel: "frontier.fleet.held", Kind: metrics.State, Unit: "s", Label: "partition", Help: "How long hosts are still left alone because earlier owners' leases may last."}
	logChanges = metrics.Metric{Name: "frontier_fleet_log_changes", OTel: "frontier.fleet.log.change", Kind: metrics.Level, Unit: "{change}", Label: "partition", Help: "Changes in the log since the latest copy, at the owner."}
	logBytes   = metrics.Metric{Name: "frontier_fleet_log_bytes", OTel: "frontier.fleet.log.size", Kind: metrics.Level, Unit: "By", Label: "partition", Help: "Size of these changes."}
	copyAge    = metrics.Metric{Name: "frontier_fleet_copy_age_seconds", OTel: "frontier.fleet.copy.age", Kind: metrics.State, Unit: "s", Label: "partition", Help: "How old the latest copy is, at least."}
	copyNodes  = metrics.Metric{Name: "frontier_fleet_copy_nodes", OTel: "frontier.fleet.copy.node", Kind: metrics.State, Unit: "{node}", Label: "partition", Help: "Nodes that have the latest copy."}
)

// Metrics implements metrics.Source.
func (f Figures) Metrics() []*metrics.Metric {
	return []*metrics.Metric{&nodesAlive, &confirmed, &clockAhead, &held, &logChanges, &logBytes, &copyAge, &copyNodes}
}

// Read implements metrics.Source.
func (f Figures) Read(to metrics.Sink) {
	s := f()
	alive := 0
	for _, n := range s.Nodes {
		if n.Alive {
			alive++
		}
		if n.Clock != nil {
			to.Number(&clockAhead, n.Node, n.Clock.Ahead)
		}
	}
	to.Number(&nodesAlive, "", float64(alive))
	to.Number(&confirmed, "", map[bool]float64{true: 1}[s.Confirmed])
	for _, p := range s.Partitions {
		label := strconv.Itoa(p.Partition)
		to.Number(&held, label, p.Held)
		if p.Log != nil {
			to.Number(&logChanges, label, float64(p.Log.Changes))
			to.Number(&logBytes, label, float64(p.Log.Bytes))
		}
		if p.Copy != nil {
			to.Number(&copyAge, label, p.Copy.Age)
			to.Number(&copyNodes, label, float64(len(p.Copy.Nodes)))
		}
	}
}
