package repository

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/zeebo/blake3"
)

func containsAny(s, chars string) bool { return strings.ContainsAny(s, chars) }

// encodeManifest returns the content of a manifest file and its digest.
func encodeManifest(m *Manifest) ([]byte, Hash, error) {
	if !validID(m.Backup.ID) {
		return nil, Hash{}, fmt.Errorf("%q cannot be the id of a backup", m.Backup.ID)
	}
	about, err := json.Marshal(m.Backup)
	if err != nil {
		return nil, Hash{}, err
	}
	e := manifestEncoder{next: map[uint32]uint32{}}
	e.uint(uint64(len(about)))
	e.b = append(e.b, about...)
	e.b = append(e.b, m.root[:]...)
	e.uint(uint64(len(m.Entries)))
	for i := range m.Entries {
		e.entry(&m.Entries[i])
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, Hash{}, err
	}
	defer encoder.Close()
	b := header(magicManifest, 0, 0)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(e.b)))
	b = encoder.EncodeAll(e.b, b)
	sum := blake3.Sum256(b)
	return append(b, sum[:]...), sum, nil
}

// manifestEncoder writes numbers as varints, most of them as the difference from an expected value, which is usually
// zero.
type manifestEncoder struct {
	b       []byte
	path    string
	modTime int64
	session uint32            // of the last run
	next    map[uint32]uint32 // the ordinal after the last run of each session
}

func (e *manifestEncoder) uint(n uint64) { e.b = binary.AppendUvarint(e.b, n) }
func (e *manifestEncoder) int(n int64)   { e.b = binary.AppendVarint(e.b, n) }

func (e *manifestEncoder) entry(n *Entry) {
	shared := 0
	for shared < len(e.path) && shared < len(n.Path) && e.path[shared] == n.Path[shared] {
		shared++
	}
	e.uint(uint64(shared))
	e.uint(uint64(len(n.Path) - shared))
	e.b = append(e.b, n.Path[shared:]...)
	kind := uint64(0)
	if n.IsDir() {
		kind = 1
	}
	e.uint(uint64(n.Mode.Perm())<<1 | kind)
	modTime := n.ModTime.UnixNano()
	e.int(modTime - e.modTime)
	e.path, e.modTime = n.Path, modTime
	if n.IsDir() {
		return
	}
	e.uint(uint64(n.Size))
	e.b = binary.LittleEndian.AppendUint32(e.b, n.CRC32C)
	e.uint(uint64(len(n.Chunks)))
	for _, run := range n.Chunks {
		e.run(run)
	}
}

func (e *manifestEncoder) run(run Run) {
	if run.Session == 0 {
		e.uint(uint64(run.Count)<<1 | 1)
		return
	}
	e.uint(uint64(run.Count) << 1)
	e.int(int64(run.Session) - int64(e.session))
	e.int(int64(run.First) - int64(e.next[run.Session]))
	e.session, e.next[run.Session] = run.Session, run.First+run.Count
}

// maxManifest bounds the memory that a damaged manifest can cause to be allocated.
const maxManifest = 4 << 30

// decodeManifest decodes the content of the manifest file name.
func decodeManifest(name string, b []byte) (*Manifest, Hash, error) {
	if len(b) < headerSize+8+digestSize {
		return nil, Hash{}, damaged(name, fmt.Sprintf("it has only %d bytes", len(b)))
	}
	b, end := b[:len(b)-digestSize], b[len(b)-digestSize:]
	sum := Hash(blake3.Sum256(b))
	if sum != Hash(end) {
		return nil, Hash{}, damaged(name, "its digest is wrong")
	}
	if err := checkHeader(name, b, magicManifest, 0, 0); err != nil {
		return nil, Hash{}, err
	}
	size := binary.LittleEndian.Uint64(b[headerSize:])
	if size > maxManifest {
		return nil, Hash{}, damaged(name, "its uncompressed size is too large")
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxManifest))
	if err != nil {
		return nil, Hash{}, err
	}
	defer decoder.Close()
	body, err := decoder.DecodeAll(b[headerSize+8:], make([]byte, 0, size))
	if err != nil || uint64(len(body)) != size {
		return nil, Hash{}, damaged(name, fmt.Sprintf("it cannot be decompressed to %d bytes (%v)", size, err))
	}
	d := manifestDecoder{b: body, next: map[uint32]uint32{}}
	m := d.manifest()
	if d.err == nil && len(d.b) > 0 {
		d.err = errors.New("it goes on after its end")
	}
	if d.err != nil {
		return nil, Hash{}, damaged(name, d.err.Error())
	}
	return m, sum, nil
}

type manifestDecoder struct {
	b       []byte
	err     error
	path    string
	modTime int64
	session uint32
	next    map[uint32]uint32
}

var errShort = errors.New("it ends in the middle")

func (d *manifestDecoder) uint() uint64 {
	n, size := binary.Uvarint(d.b)
	return advance(d, n, size)
}

func (d *manifestDecoder) int() int64 {
	n, size := binary.Varint(d.b)
	return advance(d, n, size)
}

func advance[T any](d *manifestDecoder, n T, size int) T {
	if size <= 0 {
		d.err = errShort
		d.b = nil
		return *new(T)
	}
	d.b = d.b[size:]
	return n
}

func (d *manifestDecoder) bytes(n uint64) []byte {
	if n > uint64(len(d.b)) {
		d.err, d.b = errShort, nil
		return nil
	}
	var b []byte
	b, d.b = d.b[:n], d.b[n:]
	return b
}

func (d *manifestDecoder) manifest() *Manifest {
	m := &Manifest{}
	if err := json.Unmarshal(d.bytes(d.uint()), &m.Backup); err != nil && d.err == nil {
		d.err = err
	}
	copy(m.root[:], d.bytes(digestSize))
	n := d.uint()
	if n > uint64(len(d.b)) {
		d.err = errShort
		return m
	}
	m.Entries = make([]Entry, 0, n)
	for ; n > 0 && d.err == nil; n-- {
		m.Entries = append(m.Entries, d.entry())
	}
	return m
}

func (d *manifestDecoder) entry() (n Entry) {
	shared, rest := d.uint(), d.uint()
	if shared > uint64(len(d.path)) {
		d.err = errShort
		return n
	}
	n.Path = d.path[:shared] + string(d.bytes(rest))
	mode := d.uint()
	d.modTime += d.int()
	d.path, n.ModTime, n.Mode = n.Path, time.Unix(0, d.modTime), fs.FileMode(mode>>1)&fs.ModePerm
	if !fs.ValidPath(n.Path) || n.Path == "." {
		d.err = fmt.Errorf("it has the path %q", n.Path)
		return n
	}
	if mode&1 != 0 {
		n.Mode |= fs.ModeDir
		return n
	}
	n.Size = int64(d.uint())
	if crc := d.bytes(4); crc != nil {
		n.CRC32C = binary.LittleEndian.Uint32(crc)
	}
	runs := d.uint()
	for ; runs > 0 && d.err == nil; runs-- {
		n.Chunks = append(n.Chunks, d.run())
	}
	if d.err == nil && (n.Size < 0 || n.Chunks.Len() != chunksIn(n.Size)) {
		d.err = fmt.Errorf("%s has %d bytes in %d chunks", n.Path, n.Size, n.Chunks.Len())
	}
	return n
}

func (d *manifestDecoder) run() (run Run) {
	count := d.uint()
	run.Count = uint32(count >> 1)
	if count&1 != 0 {
		return run
	}
	run.Session = uint32(int64(d.session) + d.int())
	run.First = uint32(int64(d.next[run.Session]) + d.int())
	d.session, d.next[run.Session] = run.Session, run.First+run.Count
	return run
}
