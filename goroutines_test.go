package main

import (
	"go/ast"
	"testing"
)

// goroutines names every function that has a go statement, and says who ends
// what it begins and waits for it. Elsewhere goroutines are begun with
// [sync.WaitGroup.Go], and its Wait is the waiting.
func goroutines() map[string]string {
	return map[string]string{
		"holdfast/backup/repository.rotate":            "wait waits before the next pack and before the end",
		"holdfast/backup/wal.newWatcher":               "one for the process, to its end",
		"holdfast/cli.servePrivately":                  "ends with the context, which ends when the function returns",
		"holdfast/cli.startPrivate":                    "ends with the process it waits for; the command may end first",
		"holdfast/cli/remote.Interruptible":            "a read from a terminal cannot be cancelled: the program ends with it",
		"holdfast/cli/remote.await":                    "a read from a terminal cannot be cancelled: the program ends with it",
		"holdfast/cli/sandbox.Take":                    "close of the lease ends both, and waits for the answer",
		"holdfast/cli/sandbox.Run":                     "waits for the process before it returns",
		"holdfast/cli/sandbox.whileHeld":               "the function it returns waits",
		"holdfast/engine/imports.keepAccount":          "the function it returns waits",
		"holdfast/engine/core.startAuditQueue":         "close waits",
		"holdfast/engine/recovery.startWithWAL":        "waits before it returns",
		"holdfast/engine/importer.pipe":                "waits before it returns",
		"holdfast/engine/meta.Open":                    "Close waits",
		"holdfast/engine/postgres.dump":                "waits before it returns",
		"holdfast/engine/postgres.follow":              "leave waits for what keeps an instance up; what reaps a server ends with it, which may outlive the appliance",
		"holdfast/engine/postgres/postgrestest.Launch": "ends with the server, which the test's cleanup stops and waits for",
		"holdfast/internal/objectstore.interrupt":      "a call of the file system cannot be cancelled; it ends once the disk answers",
		"holdfast/internal/objectstore.List":           "ends with its context; a call of the file system once the disk answers",
		"holdfast/server/operator.serveSandbox":        "ends with the request, whose body net/http closes",
		"holdfast/server.Serve":                        "waits before it returns",
	}
}

// TestEveryGoroutineIsOwned: a goroutine that nobody waits for outlives what it
// works on. The check knows go statements by the function they stand in; whether
// the reason given is true is for the reader to see, and that Wait is called,
// too. It does not see the goroutines that a library begins, as time.AfterFunc does.
func TestEveryGoroutineIsOwned(t *testing.T) {
	found := map[string]bool{}
	for _, s := range sources(t) {
		for _, file := range s.files {
			for _, decl := range file.Decls {
				function, ok := decl.(*ast.FuncDecl)
				if !ok {
					if at := firstGo(decl); at != nil {
						t.Errorf("%s: a goroutine is begun outside any function", s.at(at))
					}
					continue
				}
				at := firstGo(function)
				if at == nil {
					continue
				}
				name := s.path + "." + function.Name.Name
				found[name] = true
				if goroutines()[name] == "" {
					t.Errorf("%s: %s begins a goroutine: use sync.WaitGroup.Go, or say in the list who waits for it", s.at(at), name)
				}
			}
		}
	}
	for name := range goroutines() {
		if !found[name] {
			t.Errorf("%s begins no goroutine any more: take it off the list", name)
		}
	}
}

// firstGo returns the first go statement below a node, nil when there is none.
func firstGo(below ast.Node) (first *ast.GoStmt) {
	ast.Inspect(below, func(n ast.Node) bool {
		if statement, ok := n.(*ast.GoStmt); ok && first == nil {
			first = statement
		}
		return first == nil
	})
	return first
}
