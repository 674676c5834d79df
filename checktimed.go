// This file verifies what is known of records that wait for their time on disk.

package frontier

import "maps"

// timed checks the blocks that are not read yet, and adds what they have to live.
func (k *checker) timed(live map[uint32]int) {
	c := k.c
	buckets := map[uint32]int32{}
	for id, n := range c.timed.lost {
		if c.blocks.at(id) != nil {
			live[id] += n
		}
		buckets[id/timedBucket]++
	}
	u := &c.timed.unread
	var unread []timeItem
	for n := range u.items.all(u.root) {
		if unread = append(unread, u.items.at(n).timeItem); u.find(u.items.at(n).id) != n {
			k.bad("F5: timed block %d is not found by its number", u.items.at(n).id)
		}
	}
	if len(unread) != u.len() {
		k.bad("F5: %d timed blocks in order, counted %d", len(unread), u.len())
	}
	if c.timed.reading.id != 0 {
		unread = append(unread, c.timed.reading)
	}
	for _, it := range unread {
		n := timedLive(it)
		if n == 0 || it.id > c.timed.last {
			k.bad("F5: timed block %d of %d has %d unread records", it.id, c.timed.last, n)
		}
		if c.isBuried(it.id, timedFirst(it)) {
			k.bad("F5: timed block %d: its first unread record is finished", it.id)
		}
		if c.blocks.at(it.id) != nil {
			live[it.id] += n
		}
		buckets[it.id/timedBucket]++
		k.scheduled += int64(n)
	}
	if !maps.Equal(buckets, c.timed.buckets) {
		k.bad("F6: timed blocks by number: %v, counted %v", buckets, c.timed.buckets)
	}
}
