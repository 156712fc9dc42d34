package model

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPresetsGrowEachFromTheLast(t *testing.T) {
	t.Parallel()
	var smaller []Scope
	for _, p := range Presets() {
		scopes := p.Scopes()
		if len(scopes) <= len(smaller) {
			t.Errorf("%s has %d scopes, the preset before it %d", p, len(scopes), len(smaller))
		}
		for _, s := range smaller {
			if !slices.Contains(scopes, s) {
				t.Errorf("%s lacks %s of the preset before it", p, s)
			}
		}
		seen := map[Scope]bool{}
		for _, s := range scopes {
			if seen[s] || !slices.Contains(Scopes(), s) {
				t.Errorf("%s has %s twice, or it is no scope", p, s)
			}
			seen[s] = true
		}
		smaller = scopes
	}
}

// The lists in DECISIONS.md, "Keys, organizations, projects, people".
func TestPresetScopes(t *testing.T) {
	t.Parallel()
	readOnly := []Scope{"database:read", "storage:read", "backup:list", "account:read", "billing:read", "team:read"}
	developer := slices.Concat(readOnly, []Scope{
		"database:create", "database:update", "storage:create", "storage:update",
		"backup:create", "backup:restore", "backup:download",
	})
	for preset, want := range map[Preset][]Scope{
		PresetReadOnly: readOnly, PresetDeveloper: developer, PresetFullAccess: Scopes(),
		PresetCustom: nil, "": nil, "root": nil,
	} {
		if diff := cmp.Diff(want, preset.Scopes()); diff != "" {
			t.Errorf("%s: %s", preset, diff)
		}
	}
}

// TestPresetScopesAreTheCallers checks that two keys cannot share an array.
func TestPresetScopesAreTheCallers(t *testing.T) {
	t.Parallel()
	for _, p := range Presets() {
		changed := p.Scopes()
		changed[0] = "changed"
		_ = append(changed[:1], "changed")
		if slices.Contains(p.Scopes(), "changed") {
			t.Errorf("the scopes of %s can be changed", p)
		}
	}
}

// A key without the toggle can do nothing destructive, and only full access can
// have the toggle.
func TestOnlyFullAccessDestroys(t *testing.T) {
	t.Parallel()
	for _, op := range Operations() {
		for _, p := range []Preset{PresetReadOnly, PresetDeveloper} {
			if op.Destructive && slices.Contains(p.Scopes(), op.Scope) {
				t.Errorf("%s may %s", p, op.Action)
			}
		}
		reads := strings.HasPrefix(op.Name, "get") || strings.HasPrefix(op.Name, "list") ||
			op.Action == ActionDownloadLink || op.Action == ActionAuditExport // these only read
		needsMore := func(act Operation) bool { return !slices.Contains(PresetReadOnly.Scopes(), act.Scope) }
		if op.Action == ActionOperationCancel && !slices.ContainsFunc(op.Sometimes(), func(act Operation) bool { return !needsMore(act) }) {
			continue // each type of operation needs a scope of its own
		}
		if !reads && op.Scope != "" && slices.Contains(PresetReadOnly.Scopes(), op.Scope) {
			t.Errorf("read_only may %s", op.Action)
		}
	}
}

func TestParsePreset(t *testing.T) {
	t.Parallel()
	for _, p := range Presets() {
		if got, err := ParsePreset("preset", string(p)); err != nil || got != p {
			t.Errorf("%s gives %s, %v", p, got, err)
		}
	}
	for _, text := range []string{"", "custom", "Read_Only", "read_only ", "full_access\x00"} {
		_, err := ParsePreset("preset", text)
		wantInvalid(t, err, "preset: ", "one of read_only, developer, full_access")
	}
}

func TestParseScopes(t *testing.T) {
	t.Parallel()
	got, err := ParseScopes("scopes", []string{"team:read", "database:read", "team:read"})
	if diff := cmp.Diff([]Scope{"team:read", "database:read"}, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	if got, err := ParseScopes("scopes", nil); err != nil || got == nil || len(got) != 0 {
		t.Errorf("none gives %v, %v", got, err)
	}
	for _, text := range []string{"", "*", "database:*", "database", "Database:read", "database:read ", "database:read\n"} {
		_, err := ParseScopes("scopes", []string{"team:read", text})
		wantInvalid(t, err, "scopes: ", "is not a scope; the scopes are database:create")
	}
}
