package model

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestAuditEntryEndsWithItsHash: package meta cuts the hash off the end of the
// stored text, so new fields must precede it.
func TestAuditEntryEndsWithItsHash(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(AuditEntry{PreviousHash: "aa", Hash: "bb"})
	if err != nil || !strings.HasSuffix(string(text), `,"previous_hash":"aa","hash":"bb"}`) {
		t.Errorf("an entry is %s, %v", text, err)
	}
}
