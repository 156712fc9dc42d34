package model

import (
	"strings"
	"testing"
)

func TestResourcePrefixesAreApart(t *testing.T) {
	t.Parallel()
	types := []ResourceType{
		ResourceOrganization, ResourceProject, ResourceUser, ResourceKey, ResourceDatabase, ResourceBackup, ResourceOperation,
		ResourceExport, ResourceImport, ResourceBucket, ResourceAuditEntry,
	}
	for i, a := range types {
		if !strings.HasSuffix(a.Prefix(), "_") || !a.HasPrefix(a.Prefix()+"01j") {
			t.Errorf("%s has the prefix %q", a, a.Prefix())
		}
		for j, b := range types {
			if i != j && a.HasPrefix(b.Prefix()+"01j") {
				t.Errorf("an id of %s looks like one of %s", b, a)
			}
		}
	}
	for _, none := range []ResourceType{ResourceNone, ResourceObject, ResourceSetup, "other"} {
		if none.Prefix() != "" || none.HasPrefix("") || none.HasPrefix("x_1") {
			t.Errorf("%q has ids", none)
		}
	}
}
