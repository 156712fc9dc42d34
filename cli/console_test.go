package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/jackc/pgx/v5"

	"holdfast/internal/testenv"
	"holdfast/server/api/wire"
)

const ownerEmail, ownerPassword = "ada@example.com", "correct horse battery"

// setUp creates the first owner's account in the browser.
func (b *browser) setUp(m *machine) {
	b.t.Helper()
	b.open(m.setup)
	b.see("Set up this appliance")
	b.fill("#email", ownerEmail)
	b.fill("#password", ownerPassword)
	b.press("Make the account")
	b.see("You are set up and signed in")
}

// TestConsole uses the console as its first owner would.
func TestConsole(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start()
	b := m.browse(t)
	b.open(m.setup)
	b.shot("setup")
	b.setUp(m)
	b.see("No databases yet")
	b.shot("overview-empty")

	b.part(t, "sign in", func(t *testing.T) { consoleSignIn(m, b) })
	b.part(t, "keys", func(t *testing.T) { consoleKeys(t, m, b) })
	b.part(t, "database", func(t *testing.T) { consoleDatabase(t, m, b) })
	b.part(t, "bucket", func(t *testing.T) { consoleBucket(t, b) })
	b.part(t, "people", func(t *testing.T) { consolePeople(t, m, b) })
	b.part(t, "the rest", func(t *testing.T) { consoleRest(b) })
}

func consoleSignIn(m *machine, b *browser) {
	b.press("Sign out")
	b.see("You are signed out")
	b.shot("sign-in")
	b.open("/keys")
	b.see("Sign in")
	b.fill("#email", ownerEmail)
	b.fill("#password", "wrong")
	b.press("Sign in")
	b.see("the password is wrong")
	b.fill("#password", ownerPassword)
	b.press("Sign in")
	b.until("go on to the page that was asked for", `location.pathname === '/keys' && !document.querySelector('#password')`)
}

func consoleKeys(t *testing.T, m *machine, b *browser) {
	b.open("/keys/new")
	b.fill("#name", "from the console")
	b.click(`[name=preset][value=custom]`)
	b.click(`[name=scopes][value="account:read"]`)
	b.shot("key-new")
	b.press("Make the key")
	b.see("shown only this once")
	b.shot("key-created")
	key := b.copied(0)
	as := func(path string) int {
		defer m.as(key)()
		status, _ := m.do("GET", path, nil)
		return status
	}
	if read, list := as("/agent/status"), as("/databases"); read != http.StatusOK || list != http.StatusForbidden {
		t.Errorf("the key may read its account and no more: %d, %d", read, list)
	}
	b.open("/keys")
	b.see("from the console")
	if strings.Contains(b.value(`document.documentElement.outerHTML`), key) {
		t.Error("the key is shown again")
	}
	b.shot("keys")
	b.press("from the console")
	b.press("Revoke this key…")
	b.shot("key")
	b.press("Revoke from the console for good")
	b.see("The key is revoked")
	if status := as("/agent/status"); status != http.StatusUnauthorized {
		t.Errorf("the revoked key: %d", status)
	}
}

// consoleDatabases lists databases that a role has made, and exports one.
func consoleDatabases(t *testing.T, m *machine, b *browser) {
	var list []database
	m.must("GET", "/databases?name=shop", nil, &list)
	var role wire.DatabaseRoleSecret
	m.must("POST", "/databases/"+list[0].ID+"/roles", map[string]any{"name": "tests", "access": "create"}, &role)
	query(t, role.Connection.ConnectionURL, `create database "Bob's tests"`)
	query(t, role.Connection.ConnectionURL, "create database closed")
	query(t, role.Connection.ConnectionURL, "alter database closed allow_connections false")
	b.press("Roles")
	b.see("closed by its owner")
	b.shot("database-roles-databases")
	b.press("Export Bob's tests")
	b.see("The export will be made")
	testenv.Eventually(t, "the export", func() bool {
		var x exportRecord
		m.must("GET", "/databases/"+list[0].ID+"/export?dbname=Bob%27s%20tests", nil, &x)
		return x.Status == "ready"
	})
	b.press("Roles")
	b.see("Download")
	b.shot("database-roles-exported")
	b.press("Bob's tests")
	b.see("Tables of Bob's tests")
	b.see("There are no tables")
	b.shot("database-sizes-beside")
	b.press("Row-level security")
	b.see("Row-level security of Bob's tests")
	b.see("No tables yet")
	b.shot("database-tables-beside")
	b.press("Roles")
	b.press("Delete… tests")
	b.see("The database tests goes with it")
	b.fill("#confirm-0", "tests")
	b.press("Delete")
	b.see("No roles yet")
	b.see("Bob's tests")
}

func consoleDatabase(t *testing.T, m *machine, b *browser) {
	b.open("/databases/new")
	b.shot("database-new")
	b.fill("#name", "1shop")
	b.press("Create database")
	b.fill("#name", "shop")
	b.press("Create database")
	b.see("The database is ready")
	b.shot("database-connect")
	for _, text := range []string{"jdbc:postgresql://127.0.0.1:", "SSL Mode=VerifyFull;Root Certificate=holdfast-ca.crt"} {
		b.see(text)
	}
	url := b.copied(0)
	exec := func(sql string) {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec(`create table orders as select n from generate_series(1, 1000) n; alter table orders enable row level security`)

	b.click(`.tabs a`)
	b.see("No backup")
	b.press("Evidence and remedy for No backup")
	b.see("completed backups")
	b.shot("database-new-advice")
	b.press("Go to its backups")
	b.see("No backup yet")
	b.press("Back up now")
	b.until("complete the backup", ofBackups(1))
	b.shot("database-backups")
	exec(`drop table orders`)
	b.click(`tbody a.row`)
	b.see("Restore this backup")
	b.fill("#reason", "before the move")
	b.press("Pin this backup")
	b.see("until it is unpinned: before the move")
	b.press("Unpin")
	b.see("not pinned any more")
	b.shot("backup")
	if b.value(`String(document.querySelector('form[action$=restore] button').disabled)`) != "true" {
		t.Error("the restore is not kept until the name is typed")
	}
	b.fill("#confirm-restore", "shop")
	b.press("Restore shop")
	b.until("restore", `document.body.innerText.includes('The last restore or upgrade can be undone') && !document.querySelector('[data-live]')`)
	exec(`insert into orders values (1001)`)
	b.shot("database-restored")
	consolePointInTime(b, exec)
	consoleFailedRestore(t, m, b)

	b.press("Row security")
	b.see("nobody but the owner sees a row")
	b.press("Turn off for public.orders")
	b.see("Row-level security is changed")
	exec("create table \"two\nlines\" (n int)")
	b.press("Row security")
	b.press("Turn on for public.two lines")
	b.press("Turn off for public.two lines")
	b.until("turn it off", `document.evaluate('//button[normalize-space()="Turn on for public.two lines"]', document, null, XPathResult.BOOLEAN_TYPE).booleanValue`)
	b.see("Row-level security is changed")
	b.shot("database-tables")

	b.press("Network")
	b.fill("#entries", "10.0.0.1/8")
	b.press("Save the list")
	b.see("10.0.0.0/8 is the network")
	b.fill("#entries", "127.0.0.0/8\n10.0.0.0/8")
	b.shot("database-network")
	b.press("Save the list")
	b.see("The allow-list is in force")

	b.press("Roles")
	b.see("No roles yet")
	b.fill("#role", "pg_reports")
	b.press("Make the role")
	b.see("is reserved")
	b.fill("#role", "reports")
	b.shot("database-roles-new")
	b.press("Make the role")
	b.see("Copy the password now")
	b.shot("database-role-secret")
	reports := b.copied(1)
	b.press("I have copied it")
	b.see("reports")
	b.shot("database-roles")
	b.press("New password for reports")
	b.see("Copy the password now")
	if b.copied(1) == reports {
		t.Error("the URL of the role is the old one")
	}
	b.press("I have copied it")
	b.press("Change what reports may do")
	b.see("The role is changed")
	b.press("Delete… reports")
	b.see("What it made stays, for the owner to use or drop.")
	b.shot("database-role-delete")
	b.fill("#confirm-0", "reports")
	b.press("Delete")
	b.see("No roles yet")
	consoleDatabases(t, m, b)

	b.press("Log")
	b.see("The server's log")
	b.see("database system is ready")
	b.shot("database-log")
	exec(`do $$ begin raise log 'followed to the %', 'end'; end $$`)
	b.see("followed to the end") // without a click
	log := b.location()
	b.open(log + "?level=log")
	b.see("followed to the end")
	b.open(log + "?level=loud")
	b.see("must be one of LOG, WARNING, ERROR")

	exec("create extension hstore; create table kept (n int); alter extension hstore add table kept")
	b.press("Extensions")
	b.press("Drop… hstore")
	b.see("The rows of its tables go with it: public.kept.")
	b.shot("database-extension-drop")
	b.fill("#confirm-0", "hstore")
	b.press("Drop")
	b.see("The extension is dropped")

	b.press("Replication")
	b.see("Logical replication is off")
	b.press("Switch logical replication on")
	b.see("No publications yet")
	exec("create publication everything for table orders")
	follower, err := pgx.Connect(t.Context(), b.copied(0))
	if err != nil {
		t.Fatal(err)
	}
	defer follower.Close(t.Context())
	if _, err := follower.Exec(t.Context(), "select pg_create_logical_replication_slot('left', 'pgoutput')"); err != nil {
		t.Fatal(err)
	}
	b.press("Replication")
	b.see("not read")
	b.shot("database-replication")
	b.press("Switch logical replication off")
	b.see("whose clients would have to copy everything again")
	b.press("Drop… left")
	b.see("Its program must copy everything again.")
	b.shot("database-slot-drop")
	b.fill("#confirm-0", "left")
	b.press("Drop")
	b.see("The replication slot is dropped")

	b.click(`.tabs a[href$="/settings"]`)
	b.see("New password")
	b.click(`details:has(#setting-statement_timeout) summary`)
	b.fill("#setting-statement_timeout", "soon")
	b.press("Save the settings")
	b.see("statement_timeout: must be a time")
	b.until("keep what was typed", `document.querySelector('#setting-statement_timeout').value === 'soon'`)
	b.fill("#setting-statement_timeout", "45s")
	b.press("Save the settings")
	b.see("The settings are changed")
	b.until("keep the value", `document.querySelector('#setting-statement_timeout').value === '45s'`)
	b.shot("database-settings")
	b.press("Make a new password")
	b.see("The password is new")
	if b.copied(0) == url {
		t.Error("the URL is the old one")
	}
	consoleBranch(t, m, b)
	b.open("/")
	b.see("shop")
	b.shot("overview")
	b.click(`section[aria-labelledby=databases] a.row`) // above it is the backup that was damaged
	b.see("Activity")
	b.shot("database")
	b.click(`.tabs a[href$="/settings"]`)
	b.see("New password")
	b.fill("#confirm-delete", "shop")
	b.press("Delete shop")
	b.see("The database is in the trash")
}

// ofBackups returns an expression: whether the page shows n completed backups
// and nothing in progress.
func ofBackups(n int) string {
	return fmt.Sprintf(`document.querySelectorAll('tbody .state.completed').length === %d && !document.querySelector('[data-live]')`, n)
}

// awaitBackups waits for backups that were not requested on this page.
func (b *browser) awaitBackups(n int) {
	b.t.Helper()
	page := b.value(`document.querySelector('.tabs a[href$="/backups"]').href`)
	testenv.Eventually(b.t, "the backups to be complete", func() bool {
		b.open(page)
		return b.is(ofBackups(n))
	})
}

// consolePointInTime picks the newest time, reads the plan, and restores to it.
func consolePointInTime(b *browser, exec func(string)) {
	b.awaitBackups(2) // the one after a restore
	b.press("Back up now")
	b.until("complete the backup", ofBackups(3))
	exec(`insert into orders values (1002)`)
	b.until("reach a later moment", `document.querySelector('#at') !== null`)
	newest := b.value(`document.querySelector('#at').value`)
	b.value(`{ // the middle of the line of time
		const line = document.querySelector('[data-pick]'), box = line.getBoundingClientRect();
		line.dispatchEvent(new MouseEvent('click', {clientX: box.left + box.width / 2, bubbles: true}));
		''
	}`)
	if picked := b.value(`document.querySelector('#at').value`); picked >= newest {
		b.t.Errorf("a click on the middle of the line picks %s, the newest moment is %s", picked, newest)
	}
	b.value(fmt.Sprintf(`document.querySelector('#at').value = %q`, newest))
	b.press("Show what would happen")
	b.see("Nothing has been changed yet")
	b.shot("recovery-plan")
	b.fill("#confirm-restore", "shop")
	b.press("Restore shop")
	b.until("restore to the moment", `document.querySelectorAll('.timeline .restore').length >= 2 && !document.querySelector('[data-live]')`)
}

// consoleFailedRestore restores a backup with damaged files.
func consoleFailedRestore(t *testing.T, m *machine, b *browser) {
	vaults, err := filepath.Glob(filepath.Join(m.dataDir, "backups", "*"))
	if err != nil || len(vaults) != 1 {
		t.Fatalf("%v, %v", vaults, err)
	}
	b.awaitBackups(4)
	damagePack(t, vaults[0])
	b.click(`tbody a.row`)
	b.fill("#confirm-restore", "shop")
	b.press("Restore shop")
	b.see("The last restore failed")
	b.see("damaged")
	b.until("tell who cannot see it", `document.querySelector('[role=status].unseen').textContent.includes('The last restore failed')`)
	b.shot("database-restore-failed")
	damagePack(t, vaults[0]) // repaired
}

func consoleBucket(t *testing.T, b *browser) {
	b.open("/buckets")
	b.fill("#name", "files")
	b.press("Make the bucket")
	b.see("The bucket is made")
	path := filepath.Join(t.TempDir(), "größe & maß.txt")
	if err := os.WriteFile(path, []byte("hello, world"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	b.run(chromedp.SetUploadFiles(chromedp.CSS("#file"), []string{path}))
	b.see("The file is stored")
	b.see("größe & maß.txt")
	b.value(`{
		const files = new DataTransfer();
		files.items.add(new File(['dropped'], 'dropped.txt', {type: 'text/plain'}));
		const form = document.querySelector('.drop');
		form.dataset.prefix = 'a/b/';
		form.dispatchEvent(new DragEvent('drop', {dataTransfer: files, bubbles: true, cancelable: true}));
		''
	}`)
	b.until("open the folder of the dropped file", `location.search.includes('prefix=a') && document.body.innerText.includes('dropped.txt')`)
	b.shot("bucket-folder")
	b.value(`fetch(document.querySelector('tbody a.row').href).then(r => r.text()).then(text => { document.title = text; }); ''`)
	b.until("download", `document.title === 'dropped'`)
	b.press("Delete… a/b/dropped.txt")
	b.fill("#confirm-0", "dropped.txt")
	b.press("Delete for good")
	b.see("Nothing here yet")
	consoleUploads(b)
	b.press("files")
	b.see("größe & maß.txt")
	b.shot("bucket")
	consoleObject(b)
	b.click(`[name=public]`)
	b.press("Save")
	b.see("The bucket is changed")
	b.see("public")
	b.fill("#expire_after_days", "30")
	b.fill("#confirm-expiry", "files")
	b.press("Save how long files are kept")
	b.until("keep files for 30 days", `document.querySelector('#expire_after_days').defaultValue === '30'`)
	b.press("Delete this bucket…")
	b.fill("#confirm-bucket", "files")
	b.press("Delete files")
	b.see("The bucket is deleted")
	b.shot("buckets")
}

// consoleObject changes what is stored with an object, keeps versions of its bucket, and locks one.
func consoleObject(b *browser) {
	object := b.value(`[...document.querySelectorAll('tbody a')].find((a) => a.href.includes('/object?')).href`)
	bucket := b.location()
	b.open(object)
	b.fill("#content_type", "text/markdown")
	b.fill("#metadata", "owner=ann")
	b.fill("#tags", "team=blue")
	b.press("Save the properties")
	b.see("The object is changed")
	b.see("text/markdown")
	b.until("keep the metadata", `document.querySelector('#metadata').defaultValue === 'owner=ann' && document.querySelector('#tags').defaultValue === 'team=blue'`)
	b.open(bucket)
	b.run(chromedp.SetValue(chromedp.CSS("#versioning"), "enabled"))
	b.press("Save the versioning")
	b.see("The bucket is changed")
	b.fill("#confirm-lock", "files")
	b.press("Save the lock")
	b.see("Versions of this bucket can be locked")
	b.shot("bucket-settings")
	b.open(object)
	b.click(`[name=hold]`)
	b.press("Save the lock")
	b.until("hold the version", `document.querySelector('[name=hold]').defaultChecked`)
	b.shot("object")
	b.click(`[name=hold]`)
	b.press("Save the lock")
	b.until("take the hold away", `!document.querySelector('[name=hold]').defaultChecked`)
	b.open(bucket)
}

// consoleUploads drops a small file during the upload of a large one, deletes
// one whose name cannot be typed as stored, and drops one after its session
// ended.
func consoleUploads(b *browser) {
	drop := func(files string) {
		b.t.Helper()
		if leaves := b.value(fmt.Sprintf(`{
			const form = document.querySelector('.drop');
			for (const [name, size] of %s) {
				const files = new DataTransfer();
				files.items.add(new File(['x'.repeat(size)], name));
				form.dispatchEvent(new DragEvent('drop', {dataTransfer: files, bubbles: true, cancelable: true}));
			}
			String(dispatchEvent(new Event('beforeunload', {cancelable: true})));
		}`, files)); leaves != "false" {
			b.t.Error("a page that uploads may be left without a word")
		}
	}
	drop(`[['large', 64 << 20], [' two  spaces', 1]]`)
	b.until("store both", `['a.row[href$=large]', 'a.row[href*=spaces]'].every((name) => document.querySelector(name))`)
	b.press("Delete… a/b/ two spaces")
	b.fill("details[open] [name=confirm]", "two spaces")
	b.click("details[open] button.danger")
	b.see("The object is deleted")
	b.value(`fetch('/sign-out', {method: 'POST'}).then(() => { document.title = 'signed out'; }); ''`)
	b.until("end the session", `document.title === 'signed out'`)
	drop(`[['late', 1]]`)
	b.see("what you sent was not done")
	b.fill("#email", ownerEmail)
	b.fill("#password", ownerPassword)
	b.press("Sign in")
	b.until("go back to the folder", `location.search.includes('prefix=a') && document.querySelector('a.row[href$=large]') && !document.querySelector('a.row[href$=late]')`)
}

func consolePeople(t *testing.T, m *machine, b *browser) {
	b.open("/people")
	b.fill("#email", "bob@example.com")
	b.press("Make the invitation")
	b.see("bob@example.com is invited")
	b.shot("people")
	link := b.copied(0)
	bob := m.browse(t)
	bob.open(link)
	bob.see("Set your password")
	bob.fill("#password", "long enough for bob")
	bob.press("Set the password")
	bob.see("You are set up and signed in")
	for _, path := range []string{"/keys/new", "/databases/new", "/imports/new"} {
		bob.open(path)
		bob.see("You are signed in as viewer, which does not allow this")
	}
	bob.open("/people")
	if strings.Contains(bob.text(), "Invite somebody") {
		t.Error("a viewer is offered to invite")
	}
	b.open("/people")
	b.press("Manage… bob@example.com")
	b.press("Remove bob@example.com")
	b.see("The account is removed")
	bob.open("/")
	bob.see("Sign in")
}

func consoleRest(b *browser) {
	b.open("/projects")
	b.fill("#name", "web")
	b.press("Make the project")
	b.see("The project is made")
	b.shot("projects")
	b.open("/audit?action=database")
	b.see("database.delete")
	b.shot("audit")
	b.open("/offsite")
	b.shot("offsite")
	b.open("/settings")
	b.see("this browser")
	b.shot("settings")
	b.open("/nothing")
	b.see("There is no such page")
	b.shot("not-found")
	b.open("/settings")
	b.press("Sign out everywhere")
	b.see("You are signed out everywhere")
}

// as makes requests with another key until back is called.
func (m *machine) as(key string) (back func()) {
	old := m.key
	m.key = key
	return func() { m.key = old }
}

// device holds the fields of a device authorization that the tests read.
type device struct {
	DeviceCode string `json:"device_code"`
	UserCode   string `json:"user_code"`
	URI        string `json:"verification_uri_complete"`
}

func (m *machine) authorize(client, preset string) device {
	m.t.Helper()
	var d device
	m.must("POST", "/device/authorize", map[string]any{"client_name": client, "scope_preset": preset}, &d)
	return d
}

// poll polls for the device's key and returns it, or the error's code.
func (m *machine) poll(d device) (key, code string) {
	m.t.Helper()
	_, e := m.do("POST", "/device/token", map[string]any{"device_code": d.DeviceCode})
	if e.Error != nil {
		return "", e.Error.Code
	}
	var token struct {
		APIKey string `json:"api_key"`
	}
	if err := json.Unmarshal(e.Data, &token); err != nil {
		m.t.Fatal(err)
	}
	return token.APIKey, ""
}
