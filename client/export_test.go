package client

import "net/http"

// Over puts something between a Client and its connections.
func Over(c *Client, over func(http.RoundTripper) http.RoundTripper) {
	c.http.Transport = over(c.http.Transport)
}
