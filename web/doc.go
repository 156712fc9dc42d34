// Package web is the console: templates and assets embedded in the binary, and
// handlers that make the same engine calls as the API. No page loads anything
// from another host, and none needs JavaScript.
package web
