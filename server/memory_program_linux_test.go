package server

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestDropProgram: most pages of the program file leave the process, which goes on.
func TestDropProgram(t *testing.T) {
	before := programResident(t)
	if before < 1<<10 {
		t.Fatalf("%d KiB of the program file are resident", before)
	}
	if err := dropProgram(); err != nil {
		t.Fatal(err)
	}
	if after := programResident(t); after > before/2 {
		t.Errorf("%d KiB of the program file are resident, of %d before", after, before)
	}
}

func programResident(t *testing.T) (kib int) {
	t.Helper()
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	smaps, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	defer smaps.Close()
	mappings, err := unchangedMappings(smaps, program)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mappings {
		kib += m.resident
	}
	return kib
}

// TestUnchangedMappings: only read-only mappings of the file itself count, and none that has pages of the process's own.
func TestUnchangedMappings(t *testing.T) {
	const smaps = `00400000-00401000 r-xp 00000000 fd:00 12 /usr/bin/my holdfast
Size:               4 kB
Rss:                4 kB
Anonymous:          0 kB
VmFlags: rd ex mr mw me
00401000-00402000 r--p 00001000 fd:00 12 /usr/bin/my holdfast
Rss:                8 kB
Anonymous:          4 kB
00402000-00403000 rw-p 00002000 fd:00 12 /usr/bin/my holdfast
Rss:                4 kB
Anonymous:          0 kB
00403000-00404000 r--s 00000000 fd:00 13 /var/lib/holdfast/holdfast.db
Rss:                4 kB
Anonymous:          0 kB
c000000000-c000001000 r--p 00000000 00:00 0 
Rss:                4 kB
Anonymous:          0 kB
7f0000000000-7f0000002000 r--p 00003000 fd:00 12 /usr/bin/my holdfast
Rss:                0 kB
Anonymous:          0 kB
`
	got, err := unchangedMappings(strings.NewReader(smaps), "/usr/bin/my holdfast")
	want := []mapping{{0x400000, 0x401000, 4}, {0x7f0000000000, 0x7f0000002000, 0}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
}
