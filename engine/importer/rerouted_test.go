package importer

import "testing"

// TestCopyOfMisplacedRows: rows that their partition does not accept here go into another partition, and none is lost.
func TestCopyOfMisplacedRows(t *testing.T) {
	t.Parallel()
	// Dropped types of the source shift the oids by which enums are hashed.
	from, to := newOrigin(t, `create type gone as enum ('a', 'b', 'c'); drop type gone;
		create type letter as enum ('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o', 'p', 'q', 'r', 's', 't');
		create table h (k letter, v int, id int generated always as identity, twice int generated always as (v * 2) stored, primary key (k, v, id)) partition by hash (k);
		create table h0 partition of h for values with (modulus 2, remainder 0);
		create table h1 partition of h for values with (modulus 2, remainder 1) partition by range (v);
		create table h1_low partition of h1 for values from (minvalue) to (50);
		create table h1_high partition of h1 for values from (50) to (maxvalue);
		create index on h (v);
		insert into h select x, n from unnest(enum_range(null::letter)) x, generate_series(1, 100) n`), newPlace(t)
	record, err := to.bring(t, from.source())
	if err != nil || len(record.Errors) > 0 || record.TablesDone != record.TablesTotal || record.RowsCopied != 2000 {
		t.Errorf("%+v, %v", record, err)
	}
	there, here := from.Superuser(t, "app"), to.Superuser(t, "app")
	const leaf, root = "select distinct k from public.h0 order by 1", "select md5(string_agg(h::text, ' ' order by k, id)) from public.h"
	if ask(t, there, leaf) == ask(t, here, leaf) {
		t.Error("no partition is rerouted: nothing is tested")
	}
	if want, got := ask(t, there, root), ask(t, here, root); want != got {
		t.Errorf("rows: %s, not %s", got, want)
	}
}
