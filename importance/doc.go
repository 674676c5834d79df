// Package importance estimates which URLs are important while they are crawled, so that the best pages
// come first.
package importance
