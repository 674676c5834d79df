// This file has the links between the machines, and cuts them without a word: nothing is refused, and nothing
// arrives.

package main

import (
	"fmt"
	"os/exec"
	"strings"
)

// links joins networks, one for each node, on a bridge in the network of this process.
type links struct{ nodes int }

// rest is everything that is no node: fetchers and the web.
const rest = -1

func (l *links) address(machine int) string { return fmt.Sprintf("10.213.0.%d", 2+machine) }

func nameOf(node int) string { return string(rune('a' + node)) }

// newLinks makes the networks in that of this process, which must be its own.
func newLinks(nodes int) (*links, error) {
	l := &links{nodes: nodes}
	todo := []string{"link set lo up", "link add bridge type bridge", "addr add " + l.address(rest) + "/24 dev bridge", "link set bridge up"}
	for i := range nodes {
		n := nameOf(i)
		todo = append(todo, "netns add "+n, "link add to-"+n+" type veth peer name eth0 netns "+n, "link set to-"+n+" master bridge up",
			"-n "+n+" addr add "+l.address(i)+"/24 dev eth0", "-n "+n+" link set eth0 up", "-n "+n+" link set lo up")
	}
	for _, s := range todo {
		if err := ip(s); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// within returns a command that runs in a node's network.
func (l *links) within(node int, words ...string) *exec.Cmd {
	return exec.Command("ip", append([]string{"netns", "exec", nameOf(node)}, words...)...)
}

// cut lets nothing from one machine reach another: it goes to a hardware address that no machine has.
func (l *links) cut(from, to int) error {
	return ip(at(from, "neigh replace "+l.address(to)+" lladdr 02:00:00:00:00:ff nud permanent"))
}

// mend ends a cut.
func (l *links) mend(from, to int) error { return ip(at(from, "neigh del "+l.address(to))) }

func at(machine int, what string) string {
	if machine == rest {
		return what + " dev bridge"
	}
	return "-n " + nameOf(machine) + " " + what + " dev eth0"
}

// around returns the directions of all links of a machine.
func (l *links) around(machine int) (all [][2]int) {
	for other := rest; other < l.nodes; other++ {
		if other != machine {
			all = append(all, [2]int{machine, other}, [2]int{other, machine})
		}
	}
	return all
}

func ip(words string) error { return command(append([]string{"ip"}, strings.Fields(words)...)...) }

func command(words ...string) error {
	if b, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(words, " "), err, b)
	}
	return nil
}
