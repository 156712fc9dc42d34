package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const printed = `goos: linux
cpu: Some Processor
    bench_test.go:37: compared with pgBackRest 2.58
BenchmarkPeer-2   	       1	1234 ns/op	        75.70 MB/ours-full	         0.6200 ratio:full-time/pgBackRest
BenchmarkPut/1KiB-x8-2         	{"level":"INFO"}
 4	      1000 ns/op	 1.02 MB/s	      8000 op/s	         2.000 ratio:rate/versitygw	         1.800 lowest:rate/versitygw	         2.300 highest:rate/versitygw	         1.010 ratio:rate/itself	         0.900 lowest:rate/itself	         1.100 highest:rate/itself
BenchmarkAlone-2	    1000	      2000 ns/op
PASS
`

func TestTable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	var out strings.Builder
	if err := run(strings.NewReader(printed), &out, dir, "make bench"); err != nil {
		t.Fatal(err)
	}
	const want = `| what              | peer       | ours / peer's | lowest to highest | better |
|-------------------|------------|---------------|-------------------|--------|
| Peer: full time   | pgBackRest | 0.62          |                   | less   |
| Put 1KiB x8: rate | itself     | 1.01          | 0.90 to 1.10      | more   |
| Put 1KiB x8: rate | versitygw  | 2.00          | 1.80 to 2.30      | more   |
`
	files, err := filepath.Glob(filepath.Join(dir, "*-some-processor-*.md"))
	if err != nil || len(files) != 1 {
		t.Fatalf("kept %v, %v", files, err)
	}
	kept, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"`make bench` on Some Processor", "Peers: pgBackRest 2.58.", want} {
		if !strings.Contains(string(kept), part) {
			t.Errorf("no %q in\n%s", part, kept)
		}
	}
	if !strings.Contains(out.String(), string(kept)) {
		t.Error("what is kept was not printed")
	}
}

func TestUntrusted(t *testing.T) {
	const biased = `BenchmarkPut/1KiB-x8-2	4	1000 ns/op	1.2 ratio:rate/itself	1.1 lowest:rate/itself	1.3 highest:rate/itself
`
	var out strings.Builder
	if err := run(strings.NewReader(biased), &out, t.TempDir(), "make bench"); err != nil {
		t.Fatal(err)
	}
	if want := "Not reliable, since an arm compared with itself is not 1: Put 1KiB x8: rate."; !strings.Contains(out.String(), want) {
		t.Errorf("no %q in\n%s", want, &out)
	}
}

func TestNoTable(t *testing.T) {
	for what, printed := range map[string]string{
		"nothing to compare": "BenchmarkAlone-2\t1000\t2000 ns/op\n",
		"a benchmark failed": printed + "--- FAIL: BenchmarkGet\n",
	} {
		dir := t.TempDir()
		if err := run(strings.NewReader(printed), &strings.Builder{}, dir, "make bench"); err == nil {
			t.Errorf("%s: no error", what)
		}
		if files, _ := os.ReadDir(dir); len(files) > 0 {
			t.Errorf("%s: %v was kept", what, files)
		}
	}
}
