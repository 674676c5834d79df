package console

import "time"

// LookFor sets how long a request looks for hosts.
func (c *Console) LookFor(d time.Duration) { c.lookFor = d }
