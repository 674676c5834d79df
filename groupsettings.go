package frontier

// GroupSettings say how a group is treated.
type GroupSettings struct {
	Delay       DelayPolicy
	Concurrency int
}
