package web

import (
	"html/template"
	"testing"
)

// mustPage returns the template of a page.
func mustPage(t *testing.T, name string) *template.Template {
	t.Helper()
	all, err := loadTemplates(mustAssets(t))
	if err != nil {
		t.Fatal(err)
	}
	page, err := all.page(name)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

// Pages are parsed when they are first shown, so a mistake in one shows here.
func TestTemplatesParse(t *testing.T) {
	t.Parallel()
	all, err := loadTemplates(mustAssets(t))
	if err != nil {
		t.Fatal(err)
	}
	for name := range all {
		if page, err := all.page(name); err != nil {
			t.Error(err)
		} else if page.Lookup("content") == nil {
			t.Errorf("%s has no content", name)
		}
	}
	if page, err := all.page("other.html"); err == nil {
		t.Errorf("a page that does not exist is %v", page)
	}
}
