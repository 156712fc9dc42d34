package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/engine/objects"
	"holdfast/internal/testenv"
)

// bodyOf returns the content of an object, derived from its key.
func bodyOf(key string) []byte {
	seed := sha256.Sum256([]byte(key))
	body := bytes.Repeat(seed[:], 1+int(binary.BigEndian.Uint16(seed[:]))%200)
	if seed[2]%8 == 0 { // a file
		body = bytes.Repeat(body, 1+100_000/len(body))
	}
	return body
}

// uploader uploads until it is stopped or the server dies, and keeps the acknowledged keys.
type uploader struct {
	stopped      atomic.Bool
	done         sync.WaitGroup
	mu           sync.Mutex
	acknowledged map[string]bool
}

func (u *uploader) start(h *holdfast, clients int, prefix string) {
	u.stopped.Store(false)
	for i := range clients {
		u.done.Go(func() {
			for k := 0; !u.stopped.Load(); k++ {
				key := fmt.Sprintf("%s-%d-%d", prefix, i, k)
				answer, err := http.DefaultClient.Do(h.request(http.MethodPost, "objects?key="+key, bodyOf(key)))
				if err != nil {
					return
				}
				io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
				if answer.StatusCode == http.StatusOK {
					u.mu.Lock()
					u.acknowledged[key] = true
					u.mu.Unlock()
				}
			}
		})
	}
}

// known returns the keys acknowledged so far.
func (u *uploader) known() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	var keys []string
	for key := range u.acknowledged {
		keys = append(keys, key)
	}
	return keys
}

func (h *holdfast) request(method, path string, body []byte) *http.Request {
	r, err := http.NewRequest(method, "http://"+h.host+"/v1/buckets/"+h.bucket+"/"+path, bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	r.Header.Set("Authorization", "Bearer "+h.key)
	return r
}

// mustServe checks that each key is served completely, and that all other listed objects are complete too.
func (h *holdfast) mustServe(t *testing.T, keys []string) {
	t.Helper()
	listed := map[string]bool{}
	for cursor := ""; ; {
		answer, err := http.DefaultClient.Do(h.request(http.MethodGet, "objects?limit=100"+cursor, nil))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		var list struct {
			Data []struct{ Key string }
			Meta struct {
				Next *string `json:"next_cursor"`
			}
		}
		if err := json.Unmarshal(text, &list); err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("list: %s %s", answer.Status, text)
		}
		for _, o := range list.Data {
			listed[o.Key] = true
		}
		if list.Meta.Next == nil {
			break
		}
		cursor = "&cursor=" + *list.Meta.Next
	}
	lost := 0
	for _, key := range keys {
		if !listed[key] {
			lost++
		}
	}
	if lost > 0 {
		t.Errorf("%d of %d acknowledged objects are not listed", lost, len(keys))
	}
	for key := range listed {
		answer, err := http.Get("http://" + h.host + objects.ObjectPath + h.bucket + "/" + key)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK || !bytes.Equal(body, bodyOf(key)) {
			t.Errorf("%s: %s, %d bytes, %v", key, answer.Status, len(body), err)
		}
	}
	var bucket struct {
		Count int `json:"object_count"`
	}
	h.api(t, "GET", "/buckets/"+h.bucket, "", &bucket)
	if bucket.Count != len(listed) {
		t.Errorf("the bucket counts %d objects, and %d are listed", bucket.Count, len(listed))
	}
}

// TestKillUnderLoad kills the server at random times while objects are uploaded.
func TestKillUnderLoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := startHoldfast(t, dir, nil)
	load := &uploader{acknowledged: map[string]bool{}}
	for round := range 5 {
		load.start(h, 8, fmt.Sprint("r", round))
		time.Sleep(time.Duration(50+rand.IntN(500)) * time.Millisecond) // time until the kill
		h.kill()
		load.done.Wait()
		h = startHoldfast(t, dir, h)
	}
	keys := load.known()
	t.Logf("%d acknowledged", len(keys))
	if len(keys) < 10 {
		t.Error("that is too few to say anything")
	}
	h.mustServe(t, keys)
	if left, err := os.ReadDir(filepath.Join(dir, "blobs", "incoming")); err != nil || len(left) > 0 {
		t.Errorf("left of unfinished uploads: %v, %v", left, err)
	}
}

// TestSlowUploads keeps a hundred uploads unfinished while others are served.
func TestSlowUploads(t *testing.T) {
	t.Parallel()
	h := startHoldfast(t, t.TempDir(), nil)
	var done sync.WaitGroup
	var writers []*io.PipeWriter
	for i := range 100 {
		body, w := io.Pipe()
		writers = append(writers, w)
		key := fmt.Sprint("slow-", i)
		r := h.request(http.MethodPost, "objects?key="+key, nil)
		r.Body, r.ContentLength = body, -1
		done.Go(func() {
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Error(err)
				return
			}
			answer.Body.Close()
			if answer.StatusCode != http.StatusOK {
				t.Error(answer.Status)
			}
		})
		half := bodyOf(key)
		if _, err := w.Write(half[:len(half)/2]); err != nil {
			t.Fatal(err)
		}
	}
	load := &uploader{acknowledged: map[string]bool{}}
	load.start(h, 1, "quick")
	testenv.Eventually(t, "other uploads beside slow ones", func() bool { return len(load.known()) >= 20 })
	load.stopped.Store(true)
	load.done.Wait()
	keys := load.known()
	for i, w := range writers {
		key := fmt.Sprint("slow-", i)
		half := bodyOf(key)
		if _, err := w.Write(half[len(half)/2:]); err != nil {
			t.Fatal(err)
		}
		w.Close()
		keys = append(keys, key)
	}
	done.Wait()
	h.mustServe(t, keys)
}
