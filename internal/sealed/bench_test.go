package sealed

import (
	"bytes"
	"fmt"
	"io"
	"testing"
)

// BenchmarkSeal and BenchmarkOpen measure objects of 16 KiB, as the log has them, and
// of 16 MiB, as packs have them.
func BenchmarkSeal(b *testing.B) {
	for _, size := range benchmarkSizes() {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			key, plain := NewKey(1), plainBody(make([]byte, size))
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				body, err := Seal(key, name, plain)
				if err != nil {
					b.Fatal(err)
				}
				r, _ := body.Open()
				if _, err := io.Copy(io.Discard, onlyReader{r}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkOpen(b *testing.B) {
	for _, size := range benchmarkSizes() {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			key := NewKey(1)
			keys, sealed := ringOf(b, key), sealAll(b, key, name, make([]byte, size))
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				r, err := NewReader(bytes.NewReader(sealed), int64(len(sealed)), keys, name)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, onlyReader{r}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func benchmarkSizes() []int64 { return []int64{16 << 10, 16 << 20} }

type onlyReader struct{ io.Reader }
