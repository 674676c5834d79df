package client

import "net/http"

// Over puts something between a Client and its connections.
func Over(c *Client, over func(http.RoundTripper) http.RoundTripper) {
	for _, s := range c.servers {
		s.http.Transport = over(s.http.Transport)
	}
}
