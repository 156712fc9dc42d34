package engine

import (
	"testing"

	"holdfast/engine/postgres/postgrestest"
)

// Rows that are in other partitions here, and came after the copy, are no reason to refuse a cutover. Another publication
// whose name begins like the followed one comes along.
func TestImportFollowsPartitionsThatRouteDifferently(t *testing.T) {
	t.Parallel()
	// The oids of the enum's labels, by which they are hashed, differ from those here.
	o := newRunning(t, postgrestest.Binaries(t), `do 'begin for n in 1..40 loop create table junk (); drop table junk; end loop; end'; `+running+`
		create type mood as enum ('a', 'b', 'c', 'd', 'e', 'f');
		create table moods (id int, mood mood, primary key (id, mood)) partition by hash (mood);
		create table moods0 partition of moods for values with (modulus 3, remainder 0);
		create table moods1 partition of moods for values with (modulus 3, remainder 1);
		create table moods2 partition of moods for values with (modulus 3, remainder 2);
		create publication "everything 2" for table moods`)
	o.execute(t, "alter publication everything set (publish_via_partition_root = true)")
	a := startMajors(t)
	record := a.follow(t, o, "")
	o.execute(t, "insert into moods select n, (enum_range(null::mood))[n % 6 + 1] from generate_series(1, 60) n")
	_, c := a.mustCutOver(t, o, record.ID)
	if got := answer[int](t, c, "select count(*) from moods"); got != 60 {
		t.Errorf("%d rows have come", got)
	}
	if got := answer[string](t, c, "select string_agg(pubname || ' of ' || tablename, ', ') from pg_publication_tables"); got != "everything 2 of moods0, everything 2 of moods1, everything 2 of moods2" {
		t.Errorf("the publications are %s", got)
	}
}
