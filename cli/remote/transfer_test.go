package remote

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
)

// TestInOrder checks that inOrder works concurrently and stops at the first
// error.
func TestInOrder(t *testing.T) {
	t.Parallel()
	outer, _ := newTask(t)
	items := make([]int, 100)
	for i := range items {
		items[i] = i
	}
	results, err := inOrder(outer, items, func(_ *task, i int) (string, error) { return strconv.Itoa(i), nil })
	if err != nil || len(results) != 100 || results[42] != "42" {
		t.Errorf("%v, %v", results, err)
	}
	var begun atomic.Int32
	failure := errors.New("no")
	_, err = inOrder(outer, items, func(t *task, i int) (string, error) {
		begun.Add(1)
		if i == 3 {
			return "", failure
		}
		<-t.ctx.Done() // the others wait for the cancellation
		return "", context.Cause(t.ctx)
	})
	if !errors.Is(err, failure) || begun.Load() > inParallel {
		t.Errorf("%v after %d", err, begun.Load())
	}
}

// TestTransferredInPart checks that results from before a failure are printed.
func TestTransferredInPart(t *testing.T) {
	t.Parallel()
	outer, _ := newTask(t)
	var out bytes.Buffer
	outer.cmd.SetOut(&out)
	failure := errors.New("no")
	var before sync.WaitGroup
	before.Add(2)
	results, err := inOrder(outer, []int{0, 1, 2}, func(_ *task, i int) (string, error) {
		if i == 1 {
			before.Wait()
			return "", failure
		}
		before.Done()
		return strconv.Itoa(i), nil
	})
	if !errors.Is(err, failure) || !slices.Equal(results, []string{"0", "2"}) {
		t.Errorf("%q, %v", results, err)
	}
	line := func(s string) string { return "done " + s }
	if got := transferred(outer, results, err, line); !errors.Is(got, failure) || out.String() != "done 0\ndone 2\n" {
		t.Errorf("said %q, %v", out.String(), got)
	}
	out.Reset()
	outer.json = true
	if got := transferred(outer, results, err, line); !errors.Is(got, failure) || out.String() != "{\n  \"data\": [\n    \"0\",\n    \"2\"\n  ],\n  \"meta\": {\n    \"request_id\": null\n  }\n}\n" {
		t.Errorf("as JSON %q, %v", out.String(), got)
	}
}
