// Package web is what people see in a browser: templates and assets embedded
// in the binary, and handlers over the same engine calls as the API's. No page
// asks for anything from another machine, and none needs JavaScript.
package web
