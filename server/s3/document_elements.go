package s3

import (
	"bytes"
	"encoding/xml"
	"io"
	"reflect"
	"strings"
)

// elements are the elements that another may have, by their names.
type elements struct {
	children map[string]*elements
	many     bool // it may occur several times
	open     bool // it may have any others: it is refused as a whole
}

// checkElements refuses a document with elements that are unknown here, or that occur twice. To pass over one would do something
// else than the client means: a filter of a lifecycle that is misspelt would be none.
func checkElements(text []byte, document any) error {
	d := xml.NewDecoder(bytes.NewReader(text))
	root := &elements{children: map[string]*elements{}}
	root.add(reflect.TypeOf(document), nil)
	type level struct {
		*elements
		seen map[string]bool
	}
	var levels []level
	for {
		token, err := d.Token()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return malformedXML()
		}
		switch token := token.(type) {
		case xml.StartElement:
			if len(levels) == 0 { // its name was checked by the decoder
				levels = append(levels, level{root, map[string]bool{}})
				continue
			}
			parent, name := levels[len(levels)-1], token.Name.Local
			child := parent.children[name]
			if parent.open {
				child = parent.elements
			}
			if child == nil || parent.seen[name] && !child.many {
				return malformedXML()
			}
			parent.seen[name] = true
			levels = append(levels, level{child, map[string]bool{}})
		case xml.EndElement:
			levels = levels[:len(levels)-1]
			if len(levels) == 0 { // the decoder reads no further either
				return nil
			}
		}
	}
}

// add adds the elements of a type at the end of a path, which has names of elements in between.
func (e *elements) add(t reflect.Type, path []string) {
	if len(path) > 0 {
		child := e.children[path[0]]
		if child == nil {
			child = &elements{children: map[string]*elements{}}
			e.children[path[0]] = child
		}
		child.add(t, path[1:])
		return
	}
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		e.many = e.many || t.Kind() == reflect.Slice
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return
	}
	if t.NumField() == 0 {
		e.many, e.open = true, true
	}
	for field := range t.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("xml"), ",")
		switch {
		case field.Name == "XMLName" || strings.Contains(options, "attr"):
		case field.Anonymous:
			e.add(field.Type, nil)
		case name == "":
			e.add(field.Type, []string{field.Name})
		default:
			e.add(field.Type, strings.Split(name, ">"))
		}
	}
}
