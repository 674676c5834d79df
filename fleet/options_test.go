package fleet

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestOptionsAreChecked(t *testing.T) {
	for _, at := range []string{"", "localhost:1", "/x", "http://"} {
		_, err := Join(t.Context(), Options{Node: "a b", Address: at})
		assert.ErrorContains(t, err, `Address is "`+at+`"; want a URL as in http://10.0.0.1:8350`)
		assert.ErrorContains(t, err, `Node is "a b"; want 1 to 64 letters`)
	}
}
