package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	if os.Getenv("RESUME_DIR") != "" {
		main() // this process is the crawl that is to be killed
		return
	}
	os.Exit(m.Run())
}

func TestNothingIsLostAndNothingDoneTwice(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, parent(&out))
	assert.Equal(t, `killed a crawl after 25 more URLs
killed a crawl after 25 more URLs
killed a crawl after 25 more URLs
242 URLs visited; asked for again though done before a kill: 0
`, out.String())
}
