package stream

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"holdfast/internal/sealed"
)

// walLike returns bytes that compress about as WAL of small transactions does.
func walLike(size int) []byte {
	rng := rand.New(rand.NewPCG(1, 1))
	b := make([]byte, 0, size)
	for len(b) < size {
		b = fmt.Appendf(b, "record %d of relation 1663/5/%d ", len(b), 16384+rng.IntN(20))
		for range 24 {
			b = append(b, byte(rng.Uint32()))
		}
		b = append(b, make([]byte, 24)...)
	}
	return b[:size]
}

// BenchmarkLogObject encodes, compresses and seals 4 MiB of frames, and opens them.
func BenchmarkLogObject(b *testing.B) {
	c := newTestCompressor(b)
	key := sealed.NewKey(1)
	keys, _ := sealed.NewRing(key)
	for name, content := range map[string][]byte{"wal": walLike(4 << 20), "random": random(4 << 20)} {
		frames := make([]Frame, 64)
		for i := range frames {
			frames[i] = Frame{Time: time.Now(), Body: WAL{"01JDATABASE", 1, 1, uint64(i) << 16, content[i<<16 : (i+1)<<16]}}
		}
		const total = 64 * 64 << 10
		l, packed := &logBuilder{}, []byte(nil)
		pack := func() []byte {
			l = &logBuilder{plain: l.plain[:0]}
			for _, f := range frames {
				if err := l.add(f); err != nil {
					b.Fatal(err)
				}
			}
			object, _ := l.finish(c, packed[:0])
			packed = object
			body, err := sealed.Seal(key, "x", small(object))
			if err != nil {
				b.Fatal(err)
			}
			r, _ := body.Open()
			out, err := io.ReadAll(r)
			if err != nil {
				b.Fatal(err)
			}
			return out
		}
		b.Run(name+"/write", func(b *testing.B) {
			b.SetBytes(total)
			b.ReportAllocs()
			var size int
			for b.Loop() {
				size = len(pack())
			}
			b.ReportMetric(float64(size)/total, "stored/byte")
		})
		object := pack()
		b.Run(name+"/read", func(b *testing.B) {
			b.SetBytes(total)
			b.ReportAllocs()
			for b.Loop() {
				r, err := sealed.NewReader(bytes.NewReader(object), int64(len(object)), keys, "x")
				if err != nil {
					b.Fatal(err)
				}
				plain, err := io.ReadAll(r)
				if err == nil {
					_, _, err = decodeLog(c, plain)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkWriter copies frames of 64 KiB through a Writer into a directory.
func BenchmarkWriter(b *testing.B) {
	r := repository(b, directory(b), ring(b))
	s := &script{owner: "a"}
	w := open(b, claim(b, r, "one", false), Options{}, s)
	defer kill(w)
	b.SetBytes(64 << 20)
	for b.Loop() {
		for range 1024 {
			s.add(w, 64<<10)
		}
		flush(b, w)
		s.mu.Lock() // what is stored is not needed
		for i := range s.read {
			s.frames[i].Body = WAL{}
		}
		s.mu.Unlock()
	}
}
