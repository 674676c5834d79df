module github.com/seed-7440039f/frontier/fleet/nats

go 1.26.0

require (
	github.com/nats-io/nats-server/v2 v2.15.3
	github.com/nats-io/nats.go v1.55.0
	github.com/seed-7440039f/frontier v0.0.0
	github.com/stretchr/testify v1.12.1
)
