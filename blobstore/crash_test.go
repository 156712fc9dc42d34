package blobstore

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast/internal/durable/faultfs"
)

// crashDir, when set, makes this test binary the process that TestCrash kills.
const crashDir = "HOLDFAST_BLOBSTORE_CRASH_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		if at, err := strconv.Atoi(os.Getenv(killAt)); err == nil {
			writeUntilOperation(dir, at)
			return
		}
		writeUntilKilled(dir)
	}
	os.Exit(m.Run())
}

// writeUntilKilled commits blobs from four goroutines and prints each acknowledged Ref and digest.
func writeUntilKilled(dir string) {
	s, err := Open(dir, Options{DirectorySize: 16})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	lines := make(chan string)
	for range 4 {
		go func() {
			for {
				lines <- writeOne(s)
			}
		}()
	}
	for line := range lines {
		os.Stdout.WriteString(line) // one write call: all or nothing
	}
}

func writeOne(s *Store) string {
	content := make([]byte, rand.IntN(128<<10))
	for i := range content {
		content[i] = byte(rand.Uint32())
	}
	w, err := s.Create(context.Background())
	if err == nil {
		_, err = w.Write(content)
	}
	if err != nil {
		panic(err)
	}
	var ref Ref
	if len(content)%4 == 0 {
		ref, _, err = w.Commit()
	} else {
		ref, err = w.Publish(content[:min(len(content), 100)], nil)
	}
	if err != nil {
		panic(err)
	}
	sum := sha256.Sum256(content)
	return fmt.Sprintf("%s %x\n", ref, sum)
}

// TestCrash kills a writing process at random and checks that everything acknowledged as durable is complete.
func TestCrash(t *testing.T) {
	dir := t.TempDir()
	acknowledged := map[Ref]string{}
	for range 8 {
		out := killedWriter(t, dir, time.Duration(20+rand.IntN(200))*time.Millisecond)
		for line := range strings.Lines(out) {
			ref, sum, _ := strings.Cut(strings.TrimSpace(line), " ")
			acknowledged[Ref(ref)] = sum
		}
		replayed := map[Ref]bool{}
		s := openStore(t, dir, Options{Deliver: func(entries []Entry) {
			for _, e := range entries {
				replayed[e.Ref] = true
			}
		}})
		for ref := range acknowledged {
			if ref.Segment() != 0 && !replayed[ref] {
				t.Errorf("%s is not replayed", ref)
			}
		}
		mustBeWhole(t, s, acknowledged)
		s.Close()
	}
	t.Logf("%d acknowledged", len(acknowledged))
	if len(acknowledged) == 0 {
		t.Error("no writer got as far as one blob")
	}
}

// killedWriter returns the writer's output before it was killed, a while after its first acknowledgement.
func killedWriter(t *testing.T, dir string, after time.Duration) string {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crashDir+"="+dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(stdout)
	first, err := in.ReadString('\n')
	if err != nil {
		cmd.Wait()
		t.Fatalf("writer: %v %s", err, &stderr)
	}
	kill := time.AfterFunc(after, func() { cmd.Process.Kill() })
	defer kill.Stop()
	rest, _ := io.ReadAll(in)
	cmd.Wait()
	return first + string(rest)
}

// mustBeWhole also checks that the only other blobs are committed ones that were not yet acknowledged: one per
// goroutine at most.
func mustBeWhole(t *testing.T, s *Store, want map[Ref]string) {
	t.Helper()
	for ref, sum := range want {
		r, err := s.Open(t.Context(), ref)
		if err != nil {
			t.Errorf("lost: %v", err)
			continue
		}
		h := sha256.New()
		io.Copy(h, r)
		r.Close()
		if hex.EncodeToString(h.Sum(nil)) != sum {
			t.Errorf("%s is damaged", ref)
		}
	}
	var orphans []Ref
	s.Walk(func(ref Ref, _ int64, _ time.Time) error {
		if _, ok := want[ref]; !ok {
			orphans = append(orphans, ref)
		}
		return nil
	})
	if len(orphans) > 5 { // four in the channel, one being printed
		t.Errorf("%d blobs nobody was told of", len(orphans))
	}
	if err := s.Remove(orphans...); err != nil {
		t.Error(err)
	}
}

// killAt, when set, is the operation before which the writing process of TestKilledAtEveryOperation kills itself.
const killAt = "HOLDFAST_BLOBSTORE_KILL_AT"

// writeUntilOperation goes through a short life of a store, and prints acknowledgements as it goes.
func writeUntilOperation(dir string, at int) {
	fs := faultfs.KillNth(at)
	s, err := Open(dir, Options{DirectorySize: 2, SegmentSize: 500, Inline: 20, fs: fs})
	if err != nil {
		panic(err)
	}
	for i := range 6 {
		for _, content := range []string{fmt.Sprint("small ", i), fmt.Sprint("a large one of its own ", i)} {
			w, err := s.Create(context.Background())
			if err == nil {
				_, err = w.Write([]byte(content))
			}
			if err != nil {
				panic(err)
			}
			secured, err := w.Secure()
			if err != nil {
				panic(err)
			}
			ref, err := w.Publish([]byte(content+"|"+string(secured)), nil)
			if err != nil {
				panic(err)
			}
			fmt.Printf("%s %s\n", ref, content)
		}
	}
}

// TestKilledAtEveryOperation kills a process before each of its disk operations in turn: everything acknowledged is
// in the journal and complete, and nothing else is there in part.
func TestKilledAtEveryOperation(t *testing.T) {
	for at := 0; ; at++ {
		dir := filepath.Join(t.TempDir(), "store")
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), crashDir+"="+dir, killAt+"="+strconv.Itoa(at))
		out, err := cmd.Output()
		checkKilled(t, dir, at, string(out))
		if err == nil {
			t.Logf("%d operations", at)
			if at < 50 {
				t.Error("that is too few")
			}
			return
		}
	}
}

func checkKilled(t *testing.T, dir string, at int, acknowledged string) {
	t.Helper()
	notes := map[string]bool{}
	known := map[Ref]bool{}
	s := openStore(t, dir, Options{Inline: 20, Deliver: func(entries []Entry) {
		for _, e := range entries {
			content, secured, _ := strings.Cut(string(e.Note), "|")
			notes[content] = true
			known[max(e.Ref, Ref(secured))] = true
		}
	}})
	defer s.Close()
	for line := range strings.Lines(acknowledged) {
		ref, content, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		mustRead(t, s, Ref(ref), content, fmt.Sprint("operation ", at))
		if !notes[content] {
			t.Errorf("killed at %d: the note of %q is not replayed", at, content)
		}
	}
	orphans := 0
	if err := s.Walk(func(ref Ref, _ int64, _ time.Time) error {
		if !known[ref] {
			orphans++
		}
		return nil
	}); err != nil || orphans > 1 {
		t.Errorf("killed at %d: %d blobs without a note, %v", at, orphans, err)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "incoming")); err != nil || len(left) > 0 {
		t.Errorf("killed at %d: left %v, %v", at, left, err)
	}
	if lines := strings.Count(acknowledged, "\n"); len(notes) > lines+1 {
		t.Errorf("killed at %d: %d notes, %d acknowledged", at, len(notes), lines)
	}
}
