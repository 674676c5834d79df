// This file serves openapi.json, the description of the API.

package serve

import (
	_ "embed"
	"net/http"
)

//go:embed openapi.json
var openAPI []byte

func (s *Service) getOpenAPI(c *call) error {
	c.send(http.StatusOK, "application/json", openAPI)
	return nil
}
