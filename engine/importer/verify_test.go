package importer

import "testing"

// TestVerifyMembers: what belongs to a table or domain of an extension is the extension's, and not missing in the copy.
func TestVerifyMembers(t *testing.T) {
	t.Parallel()
	from, to := newOrigin(t, `create table kept (n int primary key check (n > 0));
		create domain public.earth as int check (value > 0) check (value < 10); alter extension plpgsql add domain public.earth;
		create table public.places (n int primary key check (n > 0)); alter extension plpgsql add table public.places`), newPlace(t)
	record, err := to.bring(t, from.source())
	if err != nil || len(record.Errors) > 0 {
		t.Errorf("%v, not as in the source: %+v", err, record.Errors)
	}
}
