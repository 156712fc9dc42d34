package api

import (
	"testing"
)

func TestDescriptionIsValid(t *testing.T) {
	w := open(t)
	doc := w.doc
	if err := doc.Validate(t.Context()); err != nil {
		t.Errorf("the document is not valid: %v", err)
	}
	if doc.OpenAPI != "3.1.0" || doc.Info.Version != "1.0.0" {
		t.Errorf("openapi %s, version %s", doc.OpenAPI, doc.Info.Version)
	}
}
