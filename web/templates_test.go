package web

import (
	"html/template"
	"strings"
	"testing"
	"time"

	"holdfast/engine/model"
	"holdfast/engine/offsite"
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

// The page of the copy off-site says which databases a recovery could not bring back.
func TestRecoveredWithout(t *testing.T) {
	t.Parallel()
	now := time.Now()
	status := offsite.Status{State: model.OffsiteCopying, Recovery: &offsite.RecoveryReport{
		Machine: "old", EndedAt: &now, Databases: []offsite.RecoveredDatabase{{Name: "shop", Done: true}, {Name: "wiki", Error: "its files are damaged"}},
	}}
	var page strings.Builder
	if err := mustPage(t, "offsite.html").ExecuteTemplate(&page, "content", map[string]any{"Data": newOffsiteData(status)}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"with 1 database.", "could not bring back the database wiki"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, page.String())
		}
	}
}

// The page of the copy off-site says what is damaged, what that means and what to do, and names no database that it may not.
func TestOffsiteDamage(t *testing.T) {
	t.Parallel()
	now := time.Now()
	damage := []offsite.Damage{{Object: "file 7 of epoch 00000001", Content: "backups", Database: "db_secret"}}
	for _, c := range []struct {
		point *time.Time
		says  string
	}{{&now, "brings back everything else"}, {nil, "Nothing can be recovered from it"}} {
		status := offsite.Status{
			State: model.OffsiteCopying, Verified: &offsite.Verified{At: now, Point: c.point, Damage: damage},
			Restored: &offsite.Restored{At: now, Error: "a chunk of db_secret is missing"},
		}
		var page strings.Builder
		if err := mustPage(t, "offsite.html").ExecuteTemplate(&page, "content", map[string]any{"Data": newOffsiteData(status)}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"1 object could not be read, of backups.", c.says, "A database could not be restored"} {
			if !strings.Contains(page.String(), want) {
				t.Errorf("it does not say %q:\n%s", want, page.String())
			}
		}
		if strings.Contains(page.String(), "db_secret") {
			t.Error("it names the database")
		}
	}
}
