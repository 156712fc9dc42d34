package postgres

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLogPosition follows a log line by line, through rotations and a line that is being written.
func TestLogPosition(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, logDir), 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		t.Helper()
		f, err := os.OpenFile(ringFile(dir, 0), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = f.WriteString(text)
		}
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	var at LogPosition
	next := func(limit int64, want string) {
		t.Helper()
		parsed, err := ParseLogPosition(at.String())
		if err != nil || parsed != at {
			t.Fatalf("%s: %v", at, err)
		}
		text, from, err := LogAfter(dir, at, limit)
		if err != nil || string(text) != want {
			t.Errorf("read %q, want %q, %v", text, want, err)
		}
		at = from.Plus(len(text))
	}
	next(100, "") // there is no log
	write("one\ntwo\nthr")
	text, end, err := LogTail(dir, 100)
	if err != nil || string(text) != "one\ntwo\n" {
		t.Errorf("%q, %v", text, err)
	}
	next(5, "one\n")
	next(100, "two\n")
	if at != end {
		t.Errorf("%s and %s", at, end)
	}
	next(100, "")
	write("ee\nfour\n")
	next(7, "three\n")
	if err := os.Rename(ringFile(dir, 0), ringFile(dir, 1)); err != nil {
		t.Fatal(err)
	}
	write("five\nsix\n")
	if text, _, _ := LogTail(dir, 14); string(text) != "four\nfive\nsix\n" {
		t.Errorf("%q", text)
	}
	if text, _, _ := LogTail(dir, 6); string(text) != "six\n" {
		t.Errorf("%q", text)
	}
	next(100, "four\n")
	next(100, "five\nsix\n")
	next(100, "")
	for i := range 2 { // the position is gone
		if err := os.WriteFile(ringFile(dir, i), []byte(strings.Repeat("new\n", 2-i)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	next(100, "new\nnew\n")
	write(strings.Repeat("long", 10) + "\nshort\n")
	for range 10 { // a line longer than what is read at a time is skipped
		if text, from, err := LogAfter(dir, at, 10); len(text) > 0 || err != nil {
			break
		} else {
			at = from
		}
	}
	next(10, "short\n")
	write(strings.Repeat("long", 10) + "\nshort\n")
	if err := os.Rename(ringFile(dir, 0), ringFile(dir, 1)); err != nil {
		t.Fatal(err)
	}
	write("first of the next\n")
	for range 10 { // so it is in a file that was rotated meanwhile
		text, from, err := LogAfter(dir, at, 10)
		if err != nil {
			t.Fatal(err)
		}
		if at = from.Plus(len(text)); len(text) > 0 {
			if string(text) != "short\n" {
				t.Errorf("after a long line in the file before: %q", text)
			}
			break
		}
	}
	next(100, "first of the next\n")
	for _, bad := range []string{"", "1", "-1", "1--1", "1-01", "x-1", "1-1-1", "+1-1"} {
		if p, err := ParseLogPosition(bad); err == nil {
			t.Errorf("%q: %s", bad, p)
		}
	}
}
