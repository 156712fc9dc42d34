package stream

import (
	"github.com/klauspost/compress/zstd"
)

// compressor makes and reads the zstd frames of this package's objects. It is safe for
// concurrent use.
type compressor struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

func newCompressor() (*compressor, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<20),
		zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, err
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(maxLogPlain),
		zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderLowmem(true))
	return &compressor{encoder, decoder}, err
}

func (c *compressor) compress(dst, plain []byte) []byte { return c.encoder.EncodeAll(plain, dst) }

// expand returns the size bytes that were compressed.
func (c *compressor) expand(b []byte, size int) ([]byte, error) {
	plain, err := c.decoder.DecodeAll(b, make([]byte, 0, size))
	if err != nil {
		return nil, corrupt("decompress: %w", err)
	}
	if len(plain) != size {
		return nil, corrupt("%d bytes were compressed, not %d", len(plain), size)
	}
	return plain, nil
}
