package main

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"
	"testing"
)

// TestNoInputOrOutputInTransactions: a transaction of the metadata holds up
// every other writer, or keeps old pages from being reused, so nothing is done
// in one that waits for a disk, the network, a process or a time.
//
// Whatever has a *meta.Tx, boltTx or *bbolt.Tx as a parameter or receiver counts as
// running in a transaction, and so does every function of the project that it
// calls, however deep; but not what it gives to OnCommit or begins with go. The
// check follows functions and methods that are called by name. It does not see
// through an interface, a function that is kept in a variable or handed over as
// a value, or a function of another module unless waits names it. A closure
// without a transaction among its parameters counts where it is written.
func TestNoInputOrOutputInTransactions(t *testing.T) {
	w := &waiting{functions: map[string]*body{}, next: map[string]string{}}
	var transactions []*body
	for _, s := range sources(t) {
		transactions = append(transactions, w.add(s)...)
	}
	if len(transactions) < 300 {
		t.Fatalf("%d functions run in a transaction: the check does not find them", len(transactions))
	}
	w.follow()
	reported := map[string]bool{} // a closure may be in another
	for _, b := range transactions {
		for _, call := range b.calls {
			if way := w.way(call.name); way != "" && !reported[call.at] {
				t.Errorf("%s: in a transaction: %s", call.at, way)
				reported[call.at] = true
			}
		}
	}
}

// waits reports whether a function of a library waits for something.
func waits(f *types.Func) bool {
	if f.Pkg() == nil {
		return false
	}
	switch f.Pkg().Path() {
	case "os", "os/exec", "net", "net/http", "syscall", "golang.org/x/sys/unix",
		"github.com/jackc/pgx/v5", "github.com/jackc/pgx/v5/pgconn", "github.com/jackc/pgx/v5/pgxpool":
		return !slices.Contains(harmless(), f.Name())
	case "time":
		return f.Name() == "Sleep"
	case "path/filepath":
		return slices.Contains([]string{"Glob", "Walk", "WalkDir", "EvalSymlinks"}, f.Name())
	}
	return false
}

// harmless are functions of those packages that compute and no more.
func harmless() []string {
	return []string{
		"IsNotExist", "IsExist", "Error", "Unwrap", "String", "JoinHostPort", "SplitHostPort", "ParseIP", "ParseCIDR", "StatusText", "Sanitize",
	}
}

// body is a function of the project, and what it calls by name.
type body struct {
	name  string
	calls []calling
}

type calling struct{ name, at string }

// waiting knows which functions wait, by themselves or by what they call.
type waiting struct {
	functions map[string]*body
	next      map[string]string // what a function that waits calls to do so, "" one of a library
}

// add takes a package in and returns what of it runs in a transaction.
func (w *waiting) add(s *source) (transactions []*body) {
	for _, file := range s.files {
		for _, decl := range file.Decls {
			function, ok := decl.(*ast.FuncDecl)
			if !ok || function.Body == nil {
				continue
			}
			f := s.info.Defs[function.Name].(*types.Func)
			b := &body{f.FullName(), w.calls(s, function.Body)}
			w.functions[b.name] = b
			if takesTransaction(f.Signature()) {
				transactions = append(transactions, b)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if literal, ok := n.(*ast.FuncLit); ok && takesTransaction(s.info.TypeOf(literal).(*types.Signature)) {
				transactions = append(transactions, &body{"", w.calls(s, literal.Body)})
			}
			return true
		})
	}
	return transactions
}

func takesTransaction(f *types.Signature) bool {
	if f.Recv() != nil && isTransaction(f.Recv().Type()) {
		return true
	}
	for v := range f.Params().Variables() {
		if isTransaction(v.Type()) {
			return true
		}
	}
	return false
}

func isTransaction(t types.Type) bool {
	return slices.Contains([]string{"*holdfast/engine/meta.Tx", "holdfast/engine/meta.boltTx", "*go.etcd.io/bbolt.Tx"}, t.String())
}

// calls returns what is called below a node before it ends.
func (w *waiting) calls(s *source, below ast.Node) (calls []calling) {
	ast.Inspect(below, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			return false
		case *ast.CallExpr:
			f := s.callee(n)
			if f == nil {
				return true
			}
			if f.Name() == "OnCommit" {
				return false
			}
			calls = append(calls, calling{f.FullName(), s.at(n)})
			if waits(f) {
				w.next[f.FullName()] = ""
			}
		}
		return true
	})
	return calls
}

// follow finds the functions of the project that come to one that waits.
func (w *waiting) follow() {
	for more := true; more; {
		more = false
		for name, b := range w.functions {
			if _, known := w.next[name]; known {
				continue
			}
			for _, call := range b.calls {
				if _, waits := w.next[call.name]; waits {
					w.next[name], more = call.name, true
					break
				}
			}
		}
	}
}

// way returns how the function of that name comes to wait, "" when it does not.
func (w *waiting) way(name string) string {
	next, waits := w.next[name]
	if !waits {
		return ""
	}
	way := strings.ReplaceAll(name, "holdfast/", "")
	if next != "" {
		way += " → " + w.way(next)
	}
	return way
}
