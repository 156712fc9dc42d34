package repository

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/zeebo/blake3"
)

// Every file of the repository begins with a magic of four bytes, the version, the
// hash algorithm and the compression.
const (
	formatVersion = 1
	hashBLAKE3    = 1 // 32 bytes
	packZstd      = 1

	headerSize = 16
	digestSize = 32
)

const (
	magicPack     = "HFPK"
	magicIndex    = "HFIX"
	magicManifest = "HFMF"
)

const (
	// ChunkSize is the size of a chunk in bytes. Chunks are counted from the beginning of a file.
	ChunkSize = 128 << 10
	// PageSize is the size of PostgreSQL's pages, and the unit of overlays.
	PageSize = 8 << 10

	pagesPerChunk = ChunkSize / PageSize
	// maxOverlay is the maximum number of pages in an overlay, a quarter of a chunk. A chunk with more changed pages
	// is stored whole.
	maxOverlay = pagesPerChunk / 4
	// packSize is the size at which a new pack begins.
	packSize = 64 << 20
)

// Hash is the BLAKE3 hash of a chunk's content.
type Hash [digestSize]byte

func hashOf(content []byte) Hash { return blake3.Sum256(content) }

// header returns the header of a file: magic, version, hash and compression,
// and two numbers that identify the file.
func header(magic string, session, number uint32) []byte {
	h := make([]byte, 0, headerSize)
	h = append(h, magic...)
	h = binary.LittleEndian.AppendUint16(h, formatVersion)
	h = append(h, hashBLAKE3, packZstd)
	h = binary.LittleEndian.AppendUint32(h, session)
	return binary.LittleEndian.AppendUint32(h, number)
}

// checkHeader checks the header h of the file name.
func checkHeader(name string, h []byte, magic string, session, number uint32) error {
	if len(h) < headerSize || string(h[:4]) != magic {
		return damaged(name, "it does not begin like such a file")
	}
	if v := binary.LittleEndian.Uint16(h[4:]); v != formatVersion {
		return damaged(name, fmt.Sprintf("it has version %d, and this program knows %d", v, formatVersion))
	}
	if h[6] != hashBLAKE3 || h[7] != packZstd {
		return damaged(name, fmt.Sprintf("it has hash %d and compression %d, and this program knows %d and %d", h[6], h[7], hashBLAKE3, packZstd))
	}
	if s, n := binary.LittleEndian.Uint32(h[8:]), binary.LittleEndian.Uint32(h[12:]); s != session || n != number {
		return damaged(name, fmt.Sprintf("it belongs to session %d, number %d", s, n))
	}
	return nil
}

// castagnoli is the CRC-32C table.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)
