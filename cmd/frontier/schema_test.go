//go:build unix

// This file tests that docs/configuration.md has every option as it is.

package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("frontier.update", false, "write the tables of docs that are made of the code")

// schema is the table of all options of a command.
func schema(all []*option) string {
	var b strings.Builder
	theme := ""
	for _, x := range all {
		if x.theme != theme {
			theme = x.theme
			fmt.Fprintf(&b, "\n### %s%s\n\n| option | type | default | meaning |\n|---|---|---|---|\n", strings.ToUpper(theme[:1]), theme[1:])
		}
		initial := ""
		if !x.empty() || x.kind() == boolean {
			initial = "`" + x.DefValue + "`"
		}
		usage := strings.NewReplacer("`", "", "|", `\|`, "*", `\*`).Replace(x.Usage)
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", x.Name, x.kind().name, initial, usage)
	}
	return b.String() + "\n"
}

func TestTheSchemaIsDocumented(t *testing.T) {
	documented(t, "<!-- schema -->\n", "<!-- end of the schema -->\n", schema(newSettings().all))
	documented(t, "<!-- schema of serve -->\n", "<!-- end of the schema of serve -->\n", schema(newServer().all))
	documented(t, "<!-- schema of route -->\n", "<!-- end of the schema of route -->\n", schema(newRouter().all))
}

// documented compares a part of the page, or writes it.
func documented(t *testing.T, begin, end, schema string) {
	const page = "../../docs/configuration.md"
	b, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(b), begin)
	require.True(t, ok)
	_, after, ok := strings.Cut(rest, end)
	require.True(t, ok)
	want := before + begin + schema + end + after
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o644))
		return
	}
	assert.Equal(t, want, string(b), "write it with: go test -run Schema ./cmd/frontier -frontier.update")
}

// The example of the page is a configuration.
func TestTheExampleIsAConfiguration(t *testing.T) {
	b, err := os.ReadFile("../../docs/configuration.md")
	require.NoError(t, err)
	var example string
	for i, part := range strings.Split(string(b), "```toml\n") {
		if text, _, ok := strings.Cut(part, "```"); ok && i > 0 {
			example += text
		}
	}
	t.Setenv("API_KEY", "secret")
	t.Setenv("SHOP_LOGIN", "me:secret")
	token, err := filepath.Abs("testdata/login")
	require.NoError(t, err)
	out := printed(t, "-config", configured(t, strings.ReplaceAll(example, "/run/secrets/token", token)))
	assert.Contains(t, out, "'http://intra.example:8080 bearer file:"+token+"'")
	assert.NotContains(t, out, "secret")
	assert.Contains(t, out, "\nexclude = ['/calendar/', '\\.iso$']\n")
	assert.Contains(t, out, "\nlimit-period = '24h'\n")
	assert.Contains(t, out, "'news.example priority=8 ")
}
