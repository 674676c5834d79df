// Package pb has the messages, the client and the server interface of the URLFrontier API, generated
// from urlfrontier.proto by the script generate.
package pb
