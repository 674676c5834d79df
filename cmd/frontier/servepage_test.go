package main

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The log of a server has no token. Without tokens a file has that of the page, which only its owner reads;
// with them the page takes that of an operator, and the log names who changed something.
func TestNoTokenIsInTheLog(t *testing.T) {
	t.Setenv("FRONTIER_PAGE_TOKEN", "")
	dir := filepath.Join(t.TempDir(), "state")
	_, stop, log := serving(t, "-dir", dir, "-grpc", "off")
	token := ownersFile(t, filepath.Join(dir, pageTokenFile))
	assert.Zero(t, stop())
	assert.NotContains(t, log.String(), token)
	assert.NotContains(t, log.String(), "#token=")

	tokens := filepath.Join(t.TempDir(), "tokens")
	require.NoError(t, os.WriteFile(tokens, fmt.Appendf(nil, "operate %x op-1\ncrawl %x bot-1\n", sha256.Sum256([]byte("o")), sha256.Sum256([]byte("c"))), 0o600))
	base, stop, log := serving(t, "-dir", dir, "-grpc", "off", "-tokens", tokens)
	_, err := os.Stat(filepath.Join(dir, pageTokenFile))
	assert.ErrorIs(t, err, os.ErrNotExist)
	act := func(token string) int {
		code, _ := request(t, "POST", base+"/api/do", `{"do":"pause","scope":"a.example"}`, token)
		return code
	}
	assert.Equal(t, []int{401, 401, 200}, []int{act(token), act("c"), act("o")})
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.PostForm(base+"/do", url.Values{"do": {"resume"}, "scope": {"a.example"}, "token": {"o"}})
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	client.CloseIdleConnections()
	assert.Equal(t, http.StatusSeeOther, res.StatusCode)
	assert.Zero(t, stop())
	assert.Equal(t, 2, strings.Count(log.String(), "who=op-1")+strings.Count(log.String(), `"who":"op-1"`)-strings.Count(log.String(), "msg=request"))
}

// What the page does not answer, a client has sent that left out /v1.
func TestPathsWithoutV1(t *testing.T) {
	base, stop, _ := serving(t, "-dir", t.TempDir(), "-grpc", "off")
	for _, asked := range []string{"POST /urls", "POST /", "DELETE /leases", "PUT /v1", "GET /stats"} {
		method, path, _ := strings.Cut(asked, " ")
		code, text := request(t, method, base+path, "{}", "")
		assert.Equal(t, 404, code, asked)
		assert.Contains(t, text, "paths of the API begin with /v1/", asked)
		assert.Equal(t, method != "GET", strings.Contains(text, "problems/not-found"), asked)
	}
	assert.Zero(t, stop())
}
