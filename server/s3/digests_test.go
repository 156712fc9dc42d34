package s3

import (
	"bytes"
	"crypto/md5"
	"sync"
	"testing"
)

// TestDigests computes the MD5s of bodies of several sizes beside each other, some of which are given up.
func TestDigests(t *testing.T) {
	t.Parallel()
	var d digests
	for range 3 {
		var all sync.WaitGroup
		for n := range 2 * maxParallel {
			all.Go(func() {
				data := random(uint64(n), minParallel+n*1000)
				h, release := d.get(int64(len(data)))
				defer release()
				for part := data; len(part) > 0; {
					step := min(len(part), 50_000+n)
					h.Write(part[:step])
					part = part[step:]
				}
				if want := md5.Sum(data); n%3 > 0 && !bytes.Equal(h.Sum(nil), want[:]) {
					t.Errorf("the MD5 of body %d is wrong", n)
				}
			})
		}
		all.Wait()
		if d.used != 0 || d.server != nil || d.free != nil {
			t.Fatalf("afterwards: %+v", &d)
		}
	}
	if h, _ := d.get(minParallel - 1); d.used != 0 || h.Size() != md5.Size {
		t.Error("a small body is computed beside others")
	}
}
