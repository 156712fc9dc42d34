package backup

import (
	"archive/tar"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

// answer is a server's answer, for tests of what a wrong one leads to.
type answer struct {
	t        *testing.T
	rec      *recording
	stream   *stream
	storeDir string
}

func newAnswer(t *testing.T) *answer {
	t.Helper()
	store, storeDir := openStore(t)
	rec, err := newRecording(t.Context(), store, &progress{})
	if err != nil {
		t.Fatal(err)
	}
	s := &stream{archive: rec.archive, manifest: rec.manifest, sizeKnown: func(int64) {}}
	return &answer{t: t, rec: rec, stream: s, storeDir: storeDir}
}

// send feeds messages of the COPY stream until one is refused.
func (a *answer) send(messages ...string) error {
	for _, m := range messages {
		if err := a.stream.message(&pgproto3.CopyData{Data: []byte(m)}); err != nil {
			return err
		}
	}
	return a.rec.manifest.finish()
}

// end aborts, and checks that nothing is left.
func (a *answer) end() {
	a.t.Helper()
	if err := a.rec.abort(); err != nil {
		a.t.Error(err)
	}
	mustHoldNothing(a.t, a.storeDir)
}

// goodArchive has two files and no WAL.
func goodArchive(t *testing.T) string {
	return string(tarOf(t, tar.Header{Typeflag: tar.TypeReg, Name: "a"}, tar.Header{Typeflag: tar.TypeReg, Name: "b"}))
}

func TestWrongAnswers(t *testing.T) {
	archive := "d" + goodArchive(t)
	files := []string{fileLine("a", "a"), fileLine("b", "b")}
	for name, test := range map[string]struct {
		messages []string
		want     string
	}{
		"no WAL":              {[]string{"nbase.tar\x00\x00", archive, "m", "d" + manifestOf(1, files...)}, "holds no WAL"},
		"other content":       {[]string{"nbase.tar\x00\x00", archive, "m", "d" + manifestOf(1, files[0], fileLine("b", "c"))}, "b has another checksum"},
		"other size":          {[]string{"nbase.tar\x00\x00", archive, "m", "d" + manifestOf(1, files[0], fileLine("b", "bb"))}, "b has 1 bytes"},
		"missing file":        {[]string{"nbase.tar\x00\x00", archive, "m", "d" + manifestOf(1, append(files, fileLine("c", "c"))...)}, "c is in only one"},
		"extra file":          {[]string{"nbase.tar\x00\x00", archive, "m", "d" + manifestOf(1, files[0])}, "the first is b"},
		"cut archive":         {[]string{"nbase.tar\x00\x00", archive[:400], "m", "d" + manifestOf(1, files...)}, "unexpected EOF"},
		"cut manifest":        {[]string{"nbase.tar\x00\x00", archive, "m", "d" + manifestOf(1, files...)[:100]}, "unexpected EOF"},
		"damaged manifest":    {[]string{"nbase.tar\x00\x00", archive, "m", "d" + strings.Replace(manifestOf(1, files...), "2026", "2025", 1)}, "manifest is damaged"},
		"no manifest":         {[]string{"nbase.tar\x00\x00", archive}, "no manifest"},
		"nothing":             {nil, "no manifest"},
		"empty message":       {[]string{""}, "empty message"},
		"unknown kind":        {[]string{"nbase.tar\x00\x00", "z"}, "unknown kind"},
		"data of nothing":     {[]string{archive}, "before it said"},
		"two archives":        {[]string{"nbase.tar\x00\x00", archive, "n16400.tar\x00/x\x00"}, "16400.tar"},
		"archive goes on":     {[]string{"nbase.tar\x00\x00", archive, "dmore", "m", "d" + manifestOf(1, files...)}, "after its end"},
		"hostile archive":     {[]string{"nbase.tar\x00\x00", "d" + string(tarOf(t, tar.Header{Typeflag: tar.TypeReg, Name: "../x"})), "m", "dx"}, "archive holds"},
		"manifest goes on":    {[]string{"nbase.tar\x00\x00", archive, "m", "d" + manifestOf(1, files...), "d{}"}, "damaged"},
		"manifest is no JSON": {[]string{"nbase.tar\x00\x00", archive, "m", "dhello"}, "read manifest"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAnswer(t)
			defer a.end()
			if err := a.send(test.messages...); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

// TestRightAnswer is the same with all that belongs there.
func TestRightAnswer(t *testing.T) {
	a := newAnswer(t)
	defer a.end()
	archive := goodArchive(t)
	wal := walMember(segmentName(1, 0x2000028/(1<<20), 1<<20), 1<<20)
	archive = archive[:len(archive)-1024] + wal + strings.Repeat("\x00", 1024)
	err := a.send("nbase.tar\x00\x00", "d"+archive[:600], "p12345678", "d"+archive[600:], "m",
		"d"+manifestOf(1, fileLine("a", "a"), fileLine("b", "b")))
	if err != nil {
		t.Error(err)
	}
	if a.stream.complete() == nil {
		t.Error("an answer without its rows is complete")
	}
}

// walMember is a tar member of zeros.
func walMember(name string, size int) string {
	var out strings.Builder
	w := tar.NewWriter(&out)
	w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: walPrefix + name, Size: int64(size), Mode: 0o600})
	w.Write(make([]byte, size))
	w.Flush()
	return out.String()
}

func TestTablespaceRows(t *testing.T) {
	a := newAnswer(t)
	defer a.end()
	a.stream.sets = 2
	if err := a.stream.row([][]byte{nil, nil, []byte("1024")}); err != nil {
		t.Error(err)
	}
	err := a.stream.row([][]byte{[]byte("16400"), []byte("/mnt/x"), nil})
	if err == nil || !strings.Contains(err.Error(), "/mnt/x") {
		t.Error(err)
	}
}
