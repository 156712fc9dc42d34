package cli_test

import (
	"os"
	"strings"
	"testing"

	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/testenv"
)

// TestConsoleFollow moves a database that is written to on the console's pages: it starts an import that follows, and
// cuts over.
func TestConsoleFollow(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	m := newMachine(t)
	m.env = append(m.env, "PATH="+postgrestest.Major(t, 18).Dir+":"+os.Getenv("PATH"))
	m.start()
	b := m.browse(t)
	b.setUp(m)
	source := m.createFollowed(t)
	b.open("/imports/new")
	b.fill("#source_url", source.replication)
	b.fill("#name", "moved")
	b.click(`[name=mode][value=follow]`)
	b.press("Start the import")
	b.see("must name the publication of the source that the new database follows")
	if !b.is(`document.querySelector('[name=mode][value=follow]').checked`) {
		t.Error("the choice to follow is lost with a refusal")
	}
	b.fill("#source_url", source.replication)
	b.fill("#publication", "nothing")
	b.press("Start the import")
	b.see(`the source's database has no publication "nothing"`)
	b.open("/imports/new")
	b.fill("#source_url", source.replication)
	b.fill("#name", "moved")
	b.click(`[name=mode][value=follow]`)
	b.fill("#publication", "everything")
	b.shot("import-follow-new")
	b.press("Start the import")
	b.until("show that it follows", `document.querySelector('.state.following') !== null && document.querySelector('#cutover') !== null`)
	for _, text := range []string{"the publication everything", "Behind", "What does not follow", "1 sequence: carried over at the cutover"} {
		b.see(text)
	}
	b.wantNoSecret(passwordOf(source.replication))
	b.shot("import-following")
	query(t, source.owner, "insert into numbers (n) select generate_series(1, 700)")
	b.press("Cut over…")
	b.fill("#confirm-cutover", "moved")
	b.press("Cut over to moved")
	b.until("show the end", `document.querySelector('.state.completed') !== null && document.querySelector('#cutover') === null`)
	b.see("Write pause")
	b.shot("import-cut-over")
	b.wantNoSecret(passwordOf(source.replication))
	b.press("Connect to moved")
	b.see("Connection URL")
	if got := query(t, b.copied(0), "select count(*) || ' ' || sum(n) from numbers"); got != "700 245350" {
		t.Errorf("the new database has %s", got)
	}
	if strings.Contains(m.log.String(), passwordOf(source.replication)) {
		t.Error("the appliance's log has the source's password")
	}
}
