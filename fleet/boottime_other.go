//go:build !linux

package fleet

import "time"

// sinceBoot is a clock that cannot be set. It may stand still while the machine is suspended.
func sinceBoot() time.Duration { return time.Since(began) }
