package s3

import (
	"strings"
	"testing"

	"holdfast/engine/access"
	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/internal/testenv"
)

// TestDeniedBatch deletes a batch with a key whose dangerous-operations toggle is off: each deletion is refused, and the
// request is audited once.
func TestDeniedBatch(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.ask(t, w.org.full, "PUT", "/vault", "", nil)
	w.ask(t, w.org.full, "PUT", "/vault/a", "the body", nil)
	safe := w.key(t, w.org.id, access.NewKey{Name: "safe", Scopes: []model.Scope{model.ScopeStorageDelete}, Source: model.KeySourceOperator})
	const batch = "<Delete><Quiet>true</Quiet><Object><Key>a</Key></Object><Object><Key>b</Key><VersionId>null</VersionId></Object></Delete>"
	status, _, text := w.ask(t, safe, "POST", "/vault?delete", batch, nil)
	if status != 200 || strings.Count(text, "<Code>AccessDenied</Code>") != 2 || !strings.Contains(text, "<Error><Key>a</Key>") ||
		!strings.Contains(text, "<Key>b</Key><VersionId>null</VersionId>") || !strings.Contains(text, "toggle") || strings.Contains(text, "<Deleted>") {
		t.Errorf("%d: %s", status, text)
	}
	if status, code, _ := w.ask(t, safe, "POST", "/nothing?delete", batch, nil); status != 404 || code != "NoSuchBucket" {
		t.Errorf("of no bucket: %d %s", status, code)
	}
	if _, _, text := w.ask(t, w.org.full, "GET", "/vault/a", "", nil); text != "the body" {
		t.Errorf("the object is %q", text)
	}
	refused := 0
	testenv.Eventually(t, "the refusal in the audit log", func() bool {
		entries, _, err := w.engine.Core.AuditList(&model.Call{Organization: w.org.id}, core.AuditFilter{}, 1, 100)
		if err != nil {
			t.Fatal(err)
		}
		refused = 0
		for _, e := range entries {
			if e.Action == model.ActionObjectDelete && e.ErrorCode == model.CodeDangerousNotAllowed {
				refused++
			}
		}
		return refused > 0
	})
	if refused != 1 {
		t.Errorf("the audit log has the refusal %d times", refused)
	}
}
