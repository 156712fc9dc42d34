package cli_test

import (
	"net/http"
	"strings"
	"testing"
)

// consoleBranch makes a branch of the database that the browser shows, and deletes it.
func consoleBranch(t *testing.T, m *machine, b *browser) {
	t.Helper()
	b.open("/databases/" + strings.Split(b.value(`location.pathname`), "/")[2] + "/branches")
	b.see("No branches yet")
	b.fill("#name", "trial")
	b.fill("#sleep_after", "soon")
	b.press("Make the branch")
	b.see("must be a time such as 10m or 1h")
	b.fill("#sleep_after", "1h")
	b.shot("database-branches")
	b.press("Make the branch")
	b.see("The branch is being made")
	b.until("show the branch", `[...document.querySelectorAll('.branch-tree a')].some(a => a.textContent === 'trial')`)
	var all []struct {
		ID, Name          string
		SleepAfterSeconds int `json:"sleep_after_seconds"`
	}
	m.must(http.MethodGet, "/databases", nil, &all)
	for _, db := range all {
		if db.Name != "trial" {
			continue
		}
		if db.SleepAfterSeconds != 3600 {
			t.Errorf("the branch sleeps after %d s", db.SleepAfterSeconds)
		}
		m.awaitAvailable(db.ID)
		b.open("/databases/" + db.ID + "/settings")
		b.fill("#confirm-delete", "trial")
		b.press("Delete trial")
		b.see("The database is in the trash")
	}
}
