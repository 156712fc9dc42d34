package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
	"testing"
)

// states are the variables of packages that do change, or are made on first
// use, and why each may.
func states() map[string]string {
	return map[string]string{
		"holdfast/backup/wal.processWatcher":         "the kernel gives a user few instances of inotify: one for the process",
		"holdfast/backup/wal.sharedCodec":            "made on first use, and the same from then on",
		"holdfast/engine/password.common":            "made on first use, and the same from then on",
		"holdfast/engine/postgres/extensions.byName": "made on first use, and the same from then on",
		"holdfast/engine/postgres.lastPrivatePort":   "no two servers of the process get the same socket name at once",
		"holdfast/server/api.setErrors":              "huma keeps its settings in variables of its own package",
	}
}

// TestNoStateInPackages: a variable of a package is a constant in all but the
// keyword. It is not assigned, also not in part, its address is not taken, no
// method that may change it is called, and it has neither locks nor channels
// in it; a [sync.Pool] only saves work. Packages for tests are left out. The check does not see what is written
// through a pointer, slice or map that was copied out of a variable.
func TestNoStateInPackages(t *testing.T) {
	writes := map[string]string{} // by variable, where
	for _, s := range sources(t) {
		for _, file := range s.files {
			s.noteWrites(file, writes)
		}
	}
	found := map[string]bool{}
	for _, s := range sources(t) {
		if strings.HasSuffix(s.path, "test") {
			continue
		}
		for _, name := range s.types.Scope().Names() {
			v, ok := s.types.Scope().Lookup(name).(*types.Var)
			if !ok {
				continue
			}
			full := s.path + "." + name
			problem := writes[full]
			if problem == "" && holdsState(v.Type()) {
				problem = "its type is one of things that change"
			}
			if problem == "" && s.isMadeOnce(v) {
				problem = "it is made on first use"
			}
			if _, known := states()[full]; known {
				found[full] = true
			} else if problem != "" {
				t.Errorf("%s is state of a package: %s", full, problem)
			}
		}
	}
	for full := range states() {
		if !found[full] {
			t.Errorf("%s is no variable any more: take it off the list", full)
		}
	}
}

// noteWrites notes which variables of packages a file changes.
func (s *source) noteWrites(file *ast.File, writes map[string]string) {
	note := func(e ast.Expr) {
		if v := s.variable(e); v != nil && v.Type().String() != "sync.Pool" {
			writes[v.Pkg().Path()+"."+v.Name()] = s.at(e)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				note(left)
			}
		case *ast.IncDecStmt:
			note(n.X)
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				note(n.X)
			}
		case *ast.CallExpr:
			if s.changesItsOperand(n) {
				note(n.Args[0])
			}
		case *ast.SelectorExpr:
			if s.takesAddress(n) {
				note(n.X)
			}
		}
		return true
	})
}

// changesItsOperand reports whether a call is one of delete, clear and copy.
func (s *source) changesItsOperand(call *ast.CallExpr) bool {
	name, ok := call.Fun.(*ast.Ident)
	if !ok {
		return false
	}
	b, ok := s.info.Uses[name].(*types.Builtin)
	return ok && (b.Name() == "delete" || b.Name() == "clear" || b.Name() == "copy")
}

// takesAddress reports whether a method is called that has a pointer to what it
// is called on, which is no pointer itself.
func (s *source) takesAddress(e *ast.SelectorExpr) bool {
	selection := s.info.Selections[e]
	if selection == nil || selection.Kind() != types.MethodVal {
		return false
	}
	_, wants := selection.Obj().(*types.Func).Signature().Recv().Type().(*types.Pointer)
	_, has := selection.Recv().Underlying().(*types.Pointer)
	return wants && !has
}

// variable returns the variable of a package that an expression is, or is a part
// of, nil where there is none.
func (s *source) variable(e ast.Expr) *types.Var {
	for {
		switch x := e.(type) {
		case *ast.ParenExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.SelectorExpr:
			if v, ok := s.info.Uses[x.Sel].(*types.Var); ok && !v.IsField() {
				return ofProject(v) // of another package
			}
			e = x.X
		case *ast.Ident:
			v, _ := s.info.Uses[x].(*types.Var)
			return ofProject(v)
		default:
			return nil
		}
	}
}

func ofProject(v *types.Var) *types.Var {
	if v == nil || v.IsField() || v.Pkg() == nil || v.Parent() != v.Pkg().Scope() || !strings.HasPrefix(v.Pkg().Path(), "holdfast") {
		return nil
	}
	return v
}

// holdsState reports whether a type has something in it that only makes sense
// when it changes.
func holdsState(t types.Type) bool {
	if named, ok := t.(*types.Named); ok {
		if p := named.Obj().Pkg(); p != nil && (p.Path() == "sync" || p.Path() == "sync/atomic") {
			return named.Obj().Name() != "Pool"
		}
	}
	switch u := t.Underlying().(type) {
	case *types.Chan:
		return true
	case *types.Array:
		return holdsState(u.Elem())
	case *types.Struct:
		for field := range u.Fields() {
			if holdsState(field.Type()) {
				return true
			}
		}
	}
	return false
}

// isMadeOnce reports whether a variable is made by sync.OnceFunc or its like.
func (s *source) isMadeOnce(v *types.Var) (once bool) {
	for _, file := range s.files {
		for _, decl := range file.Decls {
			general, ok := decl.(*ast.GenDecl)
			if !ok || general.Tok != token.VAR {
				continue
			}
			for _, spec := range general.Specs {
				spec := spec.(*ast.ValueSpec)
				for i, name := range spec.Names {
					if s.info.Defs[name] != v || i >= len(spec.Values) {
						continue
					}
					if call, ok := spec.Values[i].(*ast.CallExpr); ok {
						f := s.callee(call)
						once = f != nil && f.Pkg() != nil && f.Pkg().Path() == "sync"
					}
				}
			}
		}
	}
	return once
}
