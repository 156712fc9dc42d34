package cli_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/internal/testenv"
)

// TestConsoleImports imports databases on the console's pages: a slow one,
// which is cancelled, and one that cannot be copied completely.
func TestConsoleImports(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	m := newMachine(t)
	m.start()
	b := m.browse(t)
	b.setUp(m)
	source := m.connectionURL(m.createDatabase("source").ID)
	for _, sql := range []string{
		`create function refuse(int) returns int immutable language plpgsql as
			$$ begin if current_user = 'newcomer' then raise exception 'not for newcomers'; end if; return $1; end $$`,
		`create table orders as select n, repeat('x', 100) as pad from generate_series(1, 20000) n`,
		`create index refused on orders (refuse(n))`,
	} {
		query(t, source, sql)
	}
	b.part(t, "with errors", func(t *testing.T) { importWithErrors(t, b, source) })
	query(t, source, `create function wait() returns bool language plpgsql as
		$$ begin if current_user = 'newcomer' then perform pg_sleep(0.005); end if; return true; end $$`)
	query(t, source, `create table slow (n int, pad text, check (wait()))`)
	query(t, source, `insert into slow select n, repeat('x', 1000) from generate_series(1, 20000) n`)
	b.part(t, "cancel", func(t *testing.T) { importCancelled(t, m, b, source) })
	b.part(t, "without JavaScript", func(t *testing.T) { importWithoutScript(t, m, b, source) })
	if secret := passwordOf(source); strings.Contains(m.log.String(), secret) {
		t.Error("the appliance's log has the source's password")
	}
}

func passwordOf(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	userinfo, _, _ := strings.Cut(rest, "@")
	_, password, _ := strings.Cut(userinfo, ":")
	return password
}

// wantNoSecret fails if the page contains a secret.
func (b *browser) wantNoSecret(secrets ...string) {
	b.t.Helper()
	page := b.value(`document.documentElement.outerHTML + [...document.querySelectorAll('input')].map(i => i.value)`)
	for _, secret := range secrets {
		if strings.Contains(page, secret) {
			b.t.Errorf("the page at %s has a password", b.location())
		}
	}
}

func importWithErrors(t *testing.T, b *browser, source string) {
	const chosen = "chosen by the newcomer"
	b.open("/imports")
	b.see("No imports yet")
	b.shot("imports-empty")
	b.press("Import a database")
	b.shot("import-new")
	b.fill("#source_url", source)
	b.fill("#name", "source") // taken
	b.fill("#username", "No User")
	b.fill("#password", "short")
	b.click(`[name=credentials][value=same]`) // hides both, which then do not count
	b.press("Start the import")
	b.see("it has to be typed again")
	b.click(`[name=credentials][value=new]`)
	b.fill("#source_url", source)
	b.fill("#username", "newcomer")
	b.fill("#password", chosen)
	b.press("Start the import")
	b.until("come back with the user", `document.querySelector('#username').defaultValue === 'newcomer'`)
	b.see("it has to be typed again")
	b.wantNoSecret(passwordOf(source), chosen)
	b.shot("import-refused")
	if user := b.value(`document.querySelector('#username').value`); user != "newcomer" {
		t.Errorf("the user that was typed is %q now", user)
	}
	b.fill("#source_url", source)
	b.fill("#name", "moved")
	b.fill("#password", chosen)
	b.press("Start the import")
	b.until("end the import", `document.querySelector('.state.completed_with_errors') !== null && !document.querySelector('[data-live]')`)
	for _, text := range []string{"INDEX public.refused", "P0001", "not for newcomers", "20,000", "1 of 1"} {
		b.see(text)
	}
	b.wantNoSecret(passwordOf(source), chosen)
	b.shot("import-errors")
	b.press("Connect to moved")
	b.see("Connection URL")
	if got := query(t, b.copied(0), "select current_user || ' ' || count(*) from orders"); got != "newcomer 20000" {
		t.Errorf("the copy has %s", got)
	}
}

// importCancelled watches the row count of an import grow, and cancels it.
func importCancelled(t *testing.T, m *machine, b *browser, source string) {
	b.open("/imports/new")
	b.fill("#source_url", source)
	b.fill("#name", "never")
	b.fill("#username", "newcomer")
	b.press("Start the import")
	rows := `Number([...document.querySelectorAll('dt')].find(d => d.textContent === 'Rows').nextElementSibling.textContent.replaceAll(',', ''))`
	b.until("show rows being copied", `document.querySelector('.state.copying') && `+rows+` > 0`)
	b.value(`document.querySelector('.log').focus(); ''`)
	b.until("show more of them by itself", fmt.Sprintf("%s > %s", rows, b.value("String("+rows+")")))
	if !b.is(`document.activeElement.matches('.log')`) {
		t.Error("a page that renews itself takes the focus away")
	}
	b.shot("import-running")
	importKeepsWhatIsTyped(b)
	b.open("/imports")
	b.see("never")
	b.shot("imports")
	b.open(b.value(`[...document.querySelectorAll('a.row')].find((a) => a.textContent === 'never').href`)) // the page reloads itself
	b.press("Cancel this import…")
	b.fill("#confirm-cancel", "never")
	b.press("Cancel the import and delete never")
	b.see("The import is cancelled")
	b.see("Nothing is left of the copy")
	b.shot("import-cancelled")
	var databases []database
	m.must("GET", "/databases", nil, &databases)
	if len(databases) != 2 { // the source, and the database copied before
		t.Errorf("there are %d databases: %+v", len(databases), databases)
	}
}

// importKeepsWhatIsTyped types into a page that reloads itself, meanwhile
// behind a proxy without a backend.
func importKeepsWhatIsTyped(b *browser) {
	b.open("/")
	b.press("never")
	b.click(`.tabs a[href$="/access"]`)
	b.see("Allow-list")
	renewed := func() {
		b.t.Helper()
		b.value(`document.querySelector('main').dataset.before = ''; ''`)
		b.until("renew itself", `document.querySelector('main[data-live]:not([data-before])') !== null`)
	}
	b.fill("#entries", "192.0.2.7")
	b.value(`document.querySelector('form button.primary').focus(); ''`)
	renewed()
	renewed()
	if typed := b.value(`document.querySelector('#entries').value`); typed != "192.0.2.7" {
		b.t.Errorf("what was typed is %q now", typed)
	}
	if !b.is(`document.activeElement.matches('form button.primary')`) {
		b.t.Error("the button has lost the focus")
	}
	b.value(`{
		const real = window.fetch;
		let left = 2;
		window.fetch = (...all) => left-- > 0 ? Promise.resolve(new Response('', {status: 502})) : (window.again = true, real(...all));
		''
	}`)
	b.until("outlast a proxy that finds nobody", `window.again === true`)
}

// importWithoutScript starts an import, reloads its page, and cancels it with a
// form whose name is wrong at first.
func importWithoutScript(t *testing.T, m *machine, b *browser, source string) {
	b.scripts(false)
	defer b.scripts(true)
	b.open("/imports/new")
	b.click(`[name=credentials][value=same]`)
	b.click(`[name=credentials][value=new]`)
	b.fill("#source_url", source)
	b.fill("#name", "plain")
	b.fill("#username", "newcomer")
	b.press("Start the import")
	testenv.Catch(t, time.Minute, "the import to copy", func() bool {
		b.press("Look again")
		return b.is(`document.querySelector('.state.copying') !== null`)
	})
	b.press("Cancel this import…")
	b.fill("#confirm-cancel", "plane")
	b.press("Cancel the import and delete plain")
	b.see("type plain to show that you mean it")
	if b.is(`document.querySelector('[data-live]') !== null`) {
		t.Error("the page that says what is wrong is to be asked for again, where there is none")
	}
	b.press("Cancel this import…")
	b.fill("#confirm-cancel", "plain")
	b.press("Cancel the import and delete plain")
	b.see("The import is cancelled")
	m.createDatabase("plain") // the name is free
}
