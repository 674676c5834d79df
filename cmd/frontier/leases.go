// This file implements the commands about leases of a server's clients.

package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/scope"
)

// leases lists them.
func leases(ctx context.Context, c *reached, cmd *cli.Command, out *printer) error {
	if n := cmd.Int("n"); n < 1 || n > 10_000 {
		return usageError(fmt.Sprintf("leases: -n is %d; want 1 to 10000", n))
	}
	q := console.LeaseQuery{Client: cmd.String("client"), Scope: scope.All(), N: cmd.Int("n")}
	if cmd.Args().Present() {
		var err error
		if q.Scope, err = console.ParseScope(cmd.Args().First()); err != nil {
			return usageError("leases: " + err.Error())
		}
	}
	x, err := c.Leases(ctx, q)
	if err != nil {
		return err
	}
	return out.leases(x)
}

func endLeasesCommand() *cli.Command {
	c := operating("end-leases", "[SCOPE]", "end leases of clients of a server: one, those of a client, of a host, or all", func(ctx context.Context, c *reached, cmd *cli.Command, out *printer) error {
		a := console.Action{Do: "end-leases", Scope: cmd.Args().First(), Client: cmd.String("client"), Lease: cmd.String("lease")}
		if a.Scope == "" && a.Client == "" && a.Lease == "" {
			return usageError("end-leases: whose? Want -lease, -client, a host, '*.domain', or '*' for all")
		}
		return out.do(ctx, c, a)
	}, &cli.StringFlag{Name: "client", Usage: "only those of the `client` with this name or address"}, &cli.StringFlag{Name: "lease", Usage: "only the one with this `id`"})
	c.Description = `Their URLs wait again, and their hosts are left alone as after a contact that ends now.
` + aboutScopes
	return c
}
