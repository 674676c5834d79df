//go:build !amd64 && !arm64

package arena

func prefetch(*byte) {}
