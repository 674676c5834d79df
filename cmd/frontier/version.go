// This file reports the command's version.

package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v3"
)

func init() {
	cli.VersionPrinter = func(cmd *cli.Command) { fmt.Fprintln(cmd.Root().Writer, version()) }
	cli.VersionFlag = &cli.BoolFlag{Name: "version", Usage: "show the version", HideDefault: true, Local: true}
}

func versionCommand() *cli.Command {
	return &cli.Command{
		Name: "version", Usage: "show the version",
		Action: func(_ context.Context, cmd *cli.Command) error {
			if err := noMore(cmd.Args().Slice()); err != nil {
				return err
			}
			cli.VersionPrinter(cmd)
			return nil
		},
	}
}

// version returns the module's version, as the Go command stored it in the program: a release, or the
// time and revision of the build.
func version() string {
	v := "(unknown)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		v = info.Main.Version
	}
	return fmt.Sprintf("frontier %s, %s %s/%s", v, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
