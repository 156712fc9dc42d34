package web

import (
	"html"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"holdfast/engine/access"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/webhooks"
)

var (
	fieldTags  = regexp.MustCompile(`(?s)<input ([^>]*)>|<textarea ([^>]*)>(.*?)</textarea>|<select ([^>]*)>(.*?)</select>`)
	optionTags = regexp.MustCompile(`<option(?: value="([^"]*)")?( selected)?>([^<]*)`)
	attributes = regexp.MustCompile(`(\w+)(?:="([^"]*)")?`)
)

// formOn returns the fields that a browser sends of the form of a page that goes to action.
func formOn(t *testing.T, page, action string) url.Values {
	t.Helper()
	_, form, found := strings.Cut(page, `<form method="post" action="`+action+`"`)
	if !found {
		t.Fatalf("there is no form to %s", action)
	}
	form, _, _ = strings.Cut(form, "</form>")
	fields := url.Values{}
	for _, tag := range fieldTags.FindAllStringSubmatch(form, -1) {
		attribute := map[string]string{}
		for _, a := range attributes.FindAllStringSubmatch(tag[1]+tag[2]+tag[4], -1) {
			attribute[a[1]] = html.UnescapeString(a[2])
		}
		value := attribute["value"]
		_, checked := attribute["checked"]
		switch kind := attribute["type"]; {
		case (kind == "checkbox" || kind == "radio") && !checked:
			continue
		case kind == "checkbox" && value == "":
			value = "on"
		case tag[2] != "":
			value = html.UnescapeString(tag[3])
		case tag[4] != "":
			value = selectedOf(tag[5])
		}
		fields.Set(attribute["name"], value)
	}
	return fields
}

// selectedOf returns the value of the option that is selected, or of the first.
func selectedOf(options string) (value string) {
	for i, o := range optionTags.FindAllStringSubmatch(options, -1) {
		if i == 0 || o[2] != "" {
			value = html.UnescapeString(o[1])
			if !strings.Contains(o[0], " value=") {
				value = o[3]
			}
		}
	}
	return value
}

// operatorCall returns a call of the operator in the organization of the console.
func (c *console) operatorCall(t *testing.T) *model.Call {
	t.Helper()
	org, err := c.engine.Access.OrganizationList()
	if err != nil {
		t.Fatal(err)
	}
	return &model.Call{Actor: model.Actor{Type: model.ActorOperator}, Organization: org[0].ID, Role: model.RoleOwner}
}

// changeRecords changes records as somebody else would meanwhile.
func (c *console) changeRecords(t *testing.T, change func(*meta.Tx) error) {
	t.Helper()
	if err := c.engine.Core.Meta.Update(change); err != nil {
		t.Fatal(err)
	}
}

// TestStalePublicBucket: a form from before somebody else closed a bucket does not open it again.
func TestStalePublicBucket(t *testing.T) {
	t.Parallel()
	c := openConsole(t, 0)
	const path = "/buckets/bucket_1/settings"
	c.post(t, path, url.Values{"public": {"on"}, "public_prefixes": {""}})
	stale, other := formOn(t, c.get(t, "/buckets/bucket_1"), path), formOn(t, c.get(t, "/buckets/bucket_1"), path)
	if other.Get("public") != "on" {
		t.Fatalf("the form has %v", other)
	}
	other.Del("public")
	if got := c.post(t, path, other); got.status != http.StatusSeeOther {
		t.Fatalf("the first form: %d", got.status)
	}
	stale.Set("public_prefixes", "images/\r\n*")
	if got := c.post(t, path, stale); got.status != http.StatusUnprocessableEntity {
		t.Fatalf("a wrong folder: %d", got.status)
	} else if again := formOn(t, got.page, path); again.Get("if_match") != stale.Get("if_match") {
		t.Error("the form with what was typed passes for one of the present state")
	}
	stale.Set("public_prefixes", "images/")
	got := c.post(t, path, stale)
	if got.status != http.StatusPreconditionFailed || !strings.Contains(got.page, "Somebody changed this") {
		t.Errorf("the stale form: %d", got.status)
	}
	if !strings.Contains(got.page, "<dd>images/</dd>") {
		t.Error("the page does not show what was sent")
	}
	now := formOn(t, got.page, path)
	if now.Has("public") || now.Get("public_prefixes") != "" {
		t.Errorf("the form does not show the present state: %v", now)
	}
	if b, err := c.engine.Objects.BucketGet(c.operatorCall(t), "bucket_1"); err != nil || b.Public || len(b.PublicPrefixes) > 0 {
		t.Errorf("%v: %+v", err, b)
	}
	now.Set("public_prefixes", "images/")
	if got := c.post(t, path, now); got.status != http.StatusSeeOther {
		t.Errorf("the form of the present state: %d", got.status)
	}
}

// TestStaleForms: every form that sends what it showed of a resource is refused once somebody else has changed that.
func TestStaleForms(t *testing.T) {
	t.Parallel()
	c := openConsole(t, 0)
	c.engine.Core.Config.WebsiteURL = "http://web.test"
	if got := c.send(t, http.MethodPut, "/buckets/bucket_1?key=a.txt", "text/plain", strings.NewReader("text")); got.status != http.StatusNoContent {
		t.Fatal(got.page)
	}
	call := c.operatorCall(t)
	_, key, err := c.engine.Access.KeyCreate(call, access.NewKey{Name: "ci", Preset: model.PresetReadOnly, Source: model.KeySourceOperator})
	if err != nil {
		t.Fatal(err)
	}
	hook, _, err := c.engine.Webhooks.Create(c.operatorCall(t), webhooks.NewWebhook{Name: "hook", URL: "https://example.com/hook", Events: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	c.changeRecords(t, func(tx *meta.Tx) error {
		return tx.Databases().Change("db_01", func(d *model.Database) { d.Parent, d.ExpiresAt = "db_00", new(time.Now().Add(time.Hour)) })
	})
	bucket := func(change func(*model.Bucket)) func(*meta.Tx) error {
		return func(tx *meta.Tx) error { return tx.Buckets().Change("bucket_1", change) }
	}
	for _, form := range []struct {
		page, action, typed string
		change              func(*meta.Tx) error
	}{
		{"/buckets/bucket_1", "/buckets/bucket_1/expiry", "confirm=files", bucket(func(b *model.Bucket) { b.Expiry = model.Expiry{{Days: 9}} })},
		{"/buckets/bucket_1", "/buckets/bucket_1/versioning", "versioning=enabled", bucket(func(b *model.Bucket) { b.Versioning = model.VersioningEnabled })},
		{"/buckets/bucket_1", "/buckets/bucket_1/lock", "confirm=files", bucket(func(b *model.Bucket) { b.Lock = &model.BucketLock{Mode: model.LockGovernance, Days: 1} })},
		{"/buckets/bucket_1", "/buckets/bucket_1/website", "", bucket(func(b *model.Bucket) { b.Website = &model.Website{Index: "index.html"} })},
		{"/buckets/bucket_1/object?key=a.txt", "/buckets/bucket_1/object", "", func(tx *meta.Tx) error {
			return changeObject(tx, func(o *model.Object) { o.Tags = map[string]string{"a": "b"} })
		}},
		{"/buckets/bucket_1/object?key=a.txt", "/buckets/bucket_1/object/lock", "", func(tx *meta.Tx) error {
			return changeObject(tx, func(o *model.Object) { o.Lock = &model.ObjectLock{Hold: true} })
		}},
		{"/keys/" + key.ID, "/keys/" + key.ID, "", func(tx *meta.Tx) error { return tx.Keys().Change(key.ID, func(k *model.Key) { k.Name = "other" }) }},
		{"/webhooks/" + hook.ID, "/webhooks/" + hook.ID, "", func(tx *meta.Tx) error {
			return tx.Webhooks().Change(hook.ID, func(w *model.Webhook) { w.Enabled = false })
		}},
		{"/projects", "/projects/proj_z119", "", func(tx *meta.Tx) error {
			return tx.Projects().Change("proj_z119", func(p *model.Project) { p.Name = "other" })
		}},
		{"/people", "/people/user_z119/role", "", func(tx *meta.Tx) error {
			return tx.Users().Change("user_z119", func(u *model.User) { u.Role = model.RoleAdmin })
		}},
		{"/databases/db_00/settings", "/databases/db_00/retention", "confirm=shop0", func(tx *meta.Tx) error {
			return tx.Databases().Change("db_00", func(d *model.Database) { d.BackupRetention = 9 * day })
		}},
		{"/databases/db_00/settings", "/databases/db_00/sleep", "", func(tx *meta.Tx) error {
			return tx.Databases().Change("db_00", func(d *model.Database) { d.SleepAfter = time.Hour })
		}},
		{"/databases/db_01/branches", "/databases/db_01/branches/expiry", "confirm=shop1", func(tx *meta.Tx) error {
			return tx.Databases().Change("db_01", func(d *model.Database) { d.ExpiresAt = nil })
		}},
	} {
		fields := formOn(t, c.get(t, form.page), form.action)
		if field, value, typed := strings.Cut(form.typed, "="); typed {
			fields.Set(field, value)
		}
		c.changeRecords(t, form.change)
		got := c.post(t, form.action, fields)
		if got.status != http.StatusPreconditionFailed || !strings.Contains(got.page, "Somebody changed this") {
			t.Errorf("%s: %d", form.action, got.status)
			continue
		}
		if now := formOn(t, got.page, form.action); now.Get("if_match") == fields.Get("if_match") {
			t.Errorf("%s: the page has the stale form still", form.action)
		}
	}
}

// changeObject changes an object's record.
func changeObject(tx *meta.Tx, change func(*model.Object)) error {
	o, err := tx.Object("bucket_1", "a.txt")
	if err != nil {
		return err
	}
	_, err = tx.ChangeVersion("bucket_1", "a.txt", o.VersionID(), func(o *model.Object) error { change(o); return nil })
	return err
}

// TestFormsOfServersSayWhatTheyShow: the forms that need a running server carry the tag of what they show, too, and that of
// the form that was sent as long as it is shown with what was typed.
func TestFormsOfServersSayWhatTheyShow(t *testing.T) {
	t.Parallel()
	db := databaseData{View: databases.View{Database: model.Database{
		ID: "db_1", Name: "shop", Roles: []model.DatabaseRole{{Name: "reader", Access: model.AccessRead}},
		OwnSettings: map[string]string{"work_mem": "5MB"},
	}}}
	list := databases.Allowlist{Entries: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}
	for _, form := range []struct {
		page, action, want string
		data               any
	}{
		{"database_settings.html", "settings", db.Tag(), propertiesData{databaseData: db}},
		{"database_settings.html", "postgresql", db.SettingsTag(), propertiesData{databaseData: db, Settings: []databases.SettingView{{}}}},
		{"database_roles.html", "roles/update", db.Roles[0].Tag(), rolesData{databaseData: db, Roles: db.Roles}},
		{"database_access.html", "allowlist", list.Tag(), accessData{databaseData: db, Applied: list}},
	} {
		for path, want := range map[string]string{"/databases/db_1/" + form.action: "sent", "/databases/db_1/delete": form.want} {
			if form.action == "roles/update" { // whose rows show the present state
				want = form.want
			}
			var page strings.Builder
			shown := view{Path: path, User: model.User{Role: model.RoleOwner}, Data: form.data, match: "sent"}
			if err := mustPage(t, form.page).ExecuteTemplate(&page, "content", shown); err != nil {
				t.Fatal(err)
			}
			if fields := formOn(t, page.String(), "/databases/db_1/"+form.action); fields.Get("if_match") != want {
				t.Errorf("%s has %v after a form to %s", form.action, fields, path)
			}
		}
	}
}
