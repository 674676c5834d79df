package addrgroup

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestGroupsAreNamedAfterAddresses(t *testing.T) {
	for _, x := range []struct {
		addr string
		bits int
		want string
	}{
		{"192.0.2.1", 64, "192.0.2.1"},
		{"::ffff:192.0.2.1", 64, "192.0.2.1"},
		{"64:ff9b::192.0.2.1", 64, "192.0.2.1"},
		{"64:ff9b::192.0.2.1", 128, "192.0.2.1"},
		{"2001:db8:1:2:3:4:5:6", 64, "2001:db8:1:2::/64"},
		{"2001:db8:1:2::1%eth0", 64, "2001:db8:1:2::/64"},
		{"2001:db8:1:2::1", 48, "2001:db8:1::/48"},
		{"2001:db8:1:2::1", 128, "2001:db8:1:2::1"},
	} {
		name := Name(netip.MustParseAddr(x.addr), x.bits)
		assert.Equal(t, x.want, name, "%s, %d bits", x.addr, x.bits)
		assert.False(t, Assigned(name))
	}
}

func TestOtherNamesAreOperators(t *testing.T) {
	assert.False(t, Assigned(""))
	assert.False(t, Assigned("192.0.2.1"))
	assert.False(t, Assigned("2001:db8::1"))
	assert.False(t, Assigned("2001:db8::/64"))
	assert.True(t, Assigned("cluster 7"))
}
