package repository

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"holdfast/internal/durable"
	"holdfast/internal/durable/faultfs"
	"holdfast/internal/testenv"
)

// dieAt, when set, makes this test binary a process that goes through the life of a repository in the directory
// dieIn, and is killed at its n-th file operation. dieMany is the number of small indexes that are merged.
const (
	dieAt   = "HOLDFAST_REPOSITORY_TEST_DIE_AT"
	dieIn   = "HOLDFAST_REPOSITORY_TEST_DIE_IN"
	dieMany = "HOLDFAST_REPOSITORY_TEST_DIE_MANY"
)

func TestMain(m *testing.M) {
	if at, err := strconv.Atoi(os.Getenv(dieAt)); err == nil {
		fs := faultfs.KillNth(at)
		many, _ := strconv.Atoi(os.Getenv(dieMany))
		if err := live(os.Getenv(dieIn), many, fs, func(step string) { fmt.Println(step) }); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// lifeOf returns the contents of the backups of a short life.
func lifeOf() map[string]content {
	small := content{"a": first()["a"][:ChunkSize], "f": noise(9, 3000)}
	return map[string]content{"b1": first(), "b2": second(), "b3": small}
}

// live stores b1, b2 and b3, deletes b1 and b2, and collects: the first time there is nothing to do, then the
// remaining records of a pack move or, if that many small indexes are merged, those are merged. It reports each
// acknowledged step.
func live(dir string, many int, fsys durable.FS, tell func(step string)) error {
	r, err := open(dir, fsys)
	if err != nil {
		return err
	}
	defer r.Close()
	r.many = many
	if _, err := r.Clean(); err != nil {
		return err
	}
	var errs []error
	did := func(step string, err error) {
		if err == nil {
			tell(step)
		}
		errs = append(errs, err)
	}
	all := lifeOf()
	_, err = store(r, "b1", "", all["b1"])
	did("stored b1", err)
	base := "b1"
	if err != nil {
		base = ""
	}
	_, err = store(r, "b2", base, all["b2"])
	did("stored b2", err)
	_, err = store(r, "b3", "", all["b3"])
	did("stored b3", err)
	did("deleted b1", r.Delete("b1"))
	_, err = r.Collect(context.Background())
	did("collected", err)
	did("deleted b2", r.Delete("b2"))
	_, err = r.Collect(context.Background())
	did("collected", err)
	return errors.Join(errs...)
}

// mustSurvive opens what is left of a life with these acknowledged steps; a step that was only begun ("deleting b1")
// may be done or not.
func mustSurvive(t *testing.T, dir string, steps []string, when string) {
	t.Helper()
	if _, err := os.Stat(dir); err != nil {
		return // the step was not reached
	}
	r, err := Open(dir)
	if err != nil {
		t.Fatalf("%s: %v", when, err)
	}
	defer r.Close()
	ids, err := r.Backups()
	if err != nil {
		t.Fatal(err)
	}
	all, want := lifeOf(), map[string]content{}
	for _, id := range ids {
		want[id] = all[id]
	}
	for id := range all {
		stored, deleted := slices.Contains(steps, "stored "+id), slices.Contains(steps, "deleted "+id)
		if deleted && want[id] != nil {
			t.Errorf("%s: %s was deleted, and is there", when, id)
		}
		if stored && !deleted && want[id] == nil && !slices.Contains(steps, "deleting "+id) {
			t.Errorf("%s: %s was stored, and is gone", when, id)
		}
	}
	if _, err := r.Clean(); err != nil {
		t.Errorf("%s: clean: %v", when, err)
	}
	mustHold(t, r, want)
	// Whatever was interrupted, the repository can be emptied and used.
	mustStore(t, r, "after", "", second())
	want["after"] = second()
	mustHold(t, r, want)
	for id := range want {
		if err := r.Delete(id); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Collect(t.Context()); err != nil {
		t.Fatalf("%s: collect: %v", when, err)
	}
	if left := files(t, dir); len(left) > 0 {
		t.Errorf("%s: left %v", when, left)
	}
	if t.Failed() {
		t.Fatalf("%s, after %v", when, steps)
	}
}

// withUnsure adds the delete that may have been in progress.
func withUnsure(steps []string) []string {
	for _, id := range []string{"b1", "b2"} {
		if slices.Contains(steps, "stored b3") && !slices.Contains(steps, "deleted "+id) {
			return append(steps, "deleting "+id)
		}
	}
	return steps
}

// sampleStep is the distance between the operations at which short tests interrupt a process. It is prime, so that
// the samples include operations of all kinds.
const sampleStep = 11

// TestKilled kills a process with SIGKILL at a sample of its file operations.
func TestKilled(t *testing.T) {
	t.Parallel()
	killEach(t, manySmall, 0, sampleStep)
	killEach(t, 1, beforeCollect(t), sampleStep)
}

// TestKilledEverywhere kills a process with SIGKILL at its first file operation, then the second, until it
// completes.
func TestKilledEverywhere(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	killEach(t, manySmall, 0, 1)
	killEach(t, 1, beforeCollect(t), 1)
}

// beforeCollect returns the number of operations before a life's first Collect: until then the number of small
// indexes to merge is irrelevant.
func beforeCollect(t *testing.T) (n int) {
	t.Helper()
	fs := &faultfs.FS{}
	err := live(filepath.Join(t.TempDir(), "r"), 1, fs, func(step string) {
		if step == "deleted b1" {
			n = fs.Operations()
		}
	})
	if err != nil || n == 0 {
		t.Fatal(n, err)
	}
	return n
}

func killEach(t *testing.T, many, from, step int) {
	t.Helper()
	for k := from; ; k += step {
		dir := filepath.Join(t.TempDir(), "r")
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), dieAt+"="+strconv.Itoa(k), dieIn+"="+dir, dieMany+"="+strconv.Itoa(many))
		var out, errOut bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errOut
		err := cmd.Run()
		steps := strings.Split(strings.TrimSpace(out.String()), "\n")
		if err == nil {
			t.Logf("%d operations: %v", k, steps)
			return
		}
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("operation %d: %v\n%s", k, err, errOut.String())
		}
		mustSurvive(t, dir, withUnsure(steps), fmt.Sprintf("killed at operation %d", k))
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOperationFails fails a sample of the file operations, alternately with a broken and a full disk.
func TestOperationFails(t *testing.T) {
	t.Parallel()
	failEach(t, manySmall, 0, sampleStep)
	failEach(t, 1, beforeCollect(t), sampleStep)
}

// TestEveryOperationFails fails the first operation, then the second, until nothing fails.
func TestEveryOperationFails(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	failEach(t, manySmall, 0, 1)
	failEach(t, 1, beforeCollect(t), 1)
}

func failEach(t *testing.T, many, from, step int) {
	t.Helper()
	faults := []error{syscall.EIO, syscall.ENOSPC}
	for k := from; ; k += step {
		dir := filepath.Join(t.TempDir(), "r")
		fs := faultfs.FailNth(k, faults[k%2])
		var steps []string
		err := live(dir, many, fs, func(step string) { steps = append(steps, step) })
		if fs.Fired() == "" {
			if err != nil {
				t.Fatalf("no fault and yet: %v", err)
			}
			t.Logf("%d operations", k)
			return
		}
		// A failed delete may be done.
		for _, id := range []string{"b1", "b2"} {
			if !slices.Contains(steps, "deleted "+id) {
				steps = append(steps, "deleting "+id)
			}
		}
		mustSurvive(t, dir, steps, fs.Fired())
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFailedSyncMakesReadOnly fails one sync: nothing is acknowledged after it, even if later syncs succeed.
func TestFailedSyncMakesReadOnly(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"syncfile", "syncdir"} {
		on := false
		dir := filepath.Join(t.TempDir(), "r")
		fsys := &faultfs.FS{Err: syscall.EIO, Hit: func(_ int, v, _ string) bool { return on && v == verb }}
		r, err := open(dir, fsys)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		mustStore(t, r, "b1", "", first())
		on = true
		if _, err := store(r, "b2", "b1", second()); !errors.Is(err, syscall.EIO) {
			t.Fatalf("%s: %v", verb, err)
		}
		on = false
		if _, err := store(r, "b3", "b1", second()); !errors.Is(err, ErrReadOnly) {
			t.Errorf("after a failed %s: %v", verb, err)
		}
		if err := r.Delete("b1"); !errors.Is(err, ErrReadOnly) {
			t.Errorf("after a failed %s: %v", verb, err)
		}
		if _, err := r.Collect(t.Context()); !errors.Is(err, ErrReadOnly) {
			t.Errorf("after a failed %s: %v", verb, err)
		}
		if got, err := load(r, "b1"); err != nil || differ(got, first()) != "" {
			t.Errorf("reading after a failed %s: %v", verb, err)
		}
	}
}

// TestRecover: once syncs succeed again, the repository can be made writable, and has what it had.
func TestRecover(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"syncfile", "syncdir"} {
		on := false
		fsys := &faultfs.FS{Err: syscall.EIO, Hit: func(_ int, v, _ string) bool { return on && v == verb }}
		r, err := open(filepath.Join(t.TempDir(), "r"), fsys)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		mustStore(t, r, "b1", "", first())
		if recovered, err := r.Recover(); recovered || err != nil {
			t.Errorf("without a failure: %v, %v", recovered, err)
		}
		on = true
		if _, err := store(r, "b2", "b1", second()); !errors.Is(err, syscall.EIO) {
			t.Fatalf("%s: %v", verb, err)
		}
		if recovered, err := r.Recover(); verb == "syncdir" && (recovered || !errors.Is(err, syscall.EIO)) {
			t.Errorf("while %s fails: %v, %v", verb, recovered, err)
		}
		on = false
		if recovered, err := r.Recover(); verb == "syncdir" && (!recovered || err != nil) {
			t.Errorf("after a failed %s: %v, %v", verb, recovered, err)
		}
		if _, err := r.Clean(); err != nil {
			t.Error(err)
		}
		mustStore(t, r, "b3", "b1", second())
		for id, want := range map[string]content{"b1": first(), "b3": second()} {
			if got, err := load(r, id); err != nil || differ(got, want) != "" {
				t.Errorf("%s after a failed %s: %v", id, verb, err)
			}
		}
		if report, err := r.Verify(t.Context(), nil); err != nil || report.Err() != nil {
			t.Errorf("after a failed %s: %v, %v", verb, report.Err(), err)
		}
	}
}
