package main

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// apiOnly matches what only a client of the API understands: paths, methods, null, JSON, parameters of a query.
var apiOnly = regexp.MustCompile(`…/|\b(GET|POST|PUT|PATCH|DELETE) (/|…)|\b(or|to) null\b|\bsend (\?|"|[a-z_]+=)|\b[a-z_]+=(true|false)\b|"[a-z_]+": |\{"[a-z_]+"`)

// TestMessagesAreForEveryReader: the command line, the console and the API show the engine's errors and recommendations,
// so these name fields and say values in words. A client that knows a remedy of its own adds it, as the command line
// does.
func TestMessagesAreForEveryReader(t *testing.T) {
	for _, s := range sources(t) {
		if !strings.HasPrefix(s.path, "holdfast/engine") {
			continue
		}
		for _, file := range s.files {
			ast.Inspect(file, func(n ast.Node) bool {
				if _, tag := n.(*ast.Field); tag {
					return false
				}
				literal, ok := n.(*ast.BasicLit)
				if !ok || literal.Kind != token.STRING {
					return true
				}
				if text, err := strconv.Unquote(literal.Value); err == nil && apiOnly.MatchString(text) {
					t.Errorf("%s: %q is for clients of the API only: say it in words", s.at(literal), apiOnly.FindString(text))
				}
				return true
			})
		}
	}
}
