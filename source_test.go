package main

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// source is a package of the project as it was written, without its tests.
type source struct {
	path  string
	fset  *token.FileSet
	files []*ast.File
	types *types.Package
	info  *types.Info
}

// sources returns every package of the project, type-checked. Files that the
// build on this machine leaves out are left out here too.
func sources(t *testing.T) []*source {
	t.Helper()
	all, err := loadSources()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var loadSources = sync.OnceValues(func() ([]*source, error) {
	listed, exports, err := listPackages()
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	var all []*source
	for _, p := range listed {
		s := &source{path: p.ImportPath, fset: fset, info: &types.Info{
			Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
			Selections: map[*ast.SelectorExpr]*types.Selection{},
		}}
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			s.files = append(s.files, file)
		}
		config := types.Config{Importer: imports}
		if s.types, err = config.Check(p.ImportPath, fset, s.files, s.info); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
})

type listedPackage struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// listPackages returns the project's packages, and for each of them and of
// those they import the file with its exported types.
func listPackages() (ours []listedPackage, exports map[string]string, err error) {
	out, err := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles", "./...").Output()
	if err != nil {
		return nil, nil, err
	}
	exports = map[string]string{}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listedPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return ours, exports, nil
		} else if err != nil {
			return nil, nil, err
		}
		exports[p.ImportPath] = p.Export
		if p.ImportPath == "holdfast" || strings.HasPrefix(p.ImportPath, "holdfast/") {
			ours = append(ours, p)
		}
	}
}

// at says where a node is, from the top of the project.
func (s *source) at(n ast.Node) string {
	p := s.fset.Position(n.Pos())
	dir, _ := os.Getwd()
	name, err := filepath.Rel(dir, p.Filename)
	if err != nil {
		name = p.Filename
	}
	p.Filename = name
	return p.String()
}

// callee returns the function that is called by its name, nil for one that is
// a value.
func (s *source) callee(call *ast.CallExpr) *types.Func {
	fun := ast.Unparen(call.Fun)
	switch f := fun.(type) { // of a generic function with its types
	case *ast.IndexExpr:
		fun = f.X
	case *ast.IndexListExpr:
		fun = f.X
	}
	var name *ast.Ident
	switch f := fun.(type) {
	case *ast.Ident:
		name = f
	case *ast.SelectorExpr:
		name = f.Sel
	default:
		return nil
	}
	f, _ := s.info.Uses[name].(*types.Func)
	if f == nil {
		return nil
	}
	return f.Origin()
}
