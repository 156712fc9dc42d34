package objects

import (
	"bytes"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"holdfast/blobstore"
	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/internal/durable"
	"holdfast/internal/testenv"
)

// uploading is a multipart upload of a test.
type uploading struct {
	*store
	t      *testing.T
	bucket string
	id     string
}

func startMultipart(t *testing.T, s *store, bucket string) *uploading {
	t.Helper()
	m, err := s.MultipartCreate(s.call(model.ActionUploadCreate), NewMultipart{Bucket: bucket, Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	return &uploading{s, t, bucket, m.ID}
}

// put uploads a part of size bytes from body.
func (u *uploading) put(number int, body io.Reader, size int) error {
	digest := md5.New()
	_, err := u.MultipartPut(u.t.Context(), u.call(model.ActionUploadAppend), PartUpload{
		Bucket: u.bucket, Key: "k", Multipart: u.id, Number: number, Body: io.TeeReader(body, digest), Length: int64(size),
		Describe: func(p *model.MultipartPart) { p.MD5 = fmt.Sprintf("%x", digest.Sum(nil)) },
	})
	return err
}

func (u *uploading) mustPut(number int, content []byte) {
	u.t.Helper()
	if err := u.put(number, bytes.NewReader(content), len(content)); err != nil {
		u.t.Fatal(err)
	}
}

// complete makes the object of parts 1 to n of contents.
func (u *uploading) complete(contents [][]byte) error { return u.completeWith(contents, nil) }

// completeWith is complete with a check of the object's content before it exists; nil for none.
func (u *uploading) completeWith(contents [][]byte, check func() error) error {
	in := Completion{Bucket: u.bucket, Key: "k", Multipart: u.id, Size: -1}
	if check != nil {
		in.Whole = func([]model.MultipartPart) (string, io.Writer, func() (string, error)) {
			return "", nil, func() (string, error) { return "", check() }
		}
	}
	var parts []CompletedPart
	for i, content := range contents {
		parts = append(parts, CompletedPart{Number: i + 1, MD5: fmt.Sprintf("%x", md5.Sum(content))})
	}
	in.Parts = parts
	_, err := u.MultipartComplete(u.t.Context(), u.call(model.ActionObjectUpload), in)
	return err
}

func (u *uploading) mustComplete(contents [][]byte) {
	u.t.Helper()
	if err := u.complete(contents); err != nil {
		u.t.Fatal(err)
	}
	u.mustHold(contents)
}

// mustHold checks the object, and that nothing is left of the upload.
func (u *uploading) mustHold(contents [][]byte) {
	u.t.Helper()
	got, err := u.getVersion(u.bucket, "k", "")
	if err != nil || got != string(slices.Concat(contents...)) {
		u.t.Errorf("the object has %d other bytes, %v", len(got), err)
	}
	u.mustBeGone()
}

func (u *uploading) mustBeGone() {
	u.t.Helper()
	testenv.Eventually(u.t, "removal of the parts", func() bool { return len(u.files()) == 0 })
}

// numbers returns the numbers of the parts that are there.
func (u *uploading) numbers() (all []int) {
	u.t.Helper()
	_, parts, err := u.MultipartParts(u.call(model.ActionUploadGet), u.bucket, "k", u.id)
	if err != nil {
		u.t.Fatal(err)
	}
	for _, p := range parts {
		all = append(all, p.Number)
	}
	return all
}

// files returns the paths of the files with the bytes of parts.
func (u *uploading) files() []string {
	paths, err := filepath.Glob(filepath.Join(u.cfg.DataDir, Directory, "parts", "*"))
	if err != nil {
		u.t.Fatal(err)
	}
	return paths
}

func (u *uploading) wantFiles(want int, when string) {
	u.t.Helper()
	if got := len(u.files()); got != want {
		u.t.Errorf("%s: %d files with parts, want %d", when, got, want)
	}
}

// randomParts returns parts of the smallest size, the last one shorter.
func randomParts(n int) [][]byte {
	source := rand.NewChaCha8([32]byte{byte(n)})
	parts := make([][]byte, n)
	for i := range parts {
		parts[i] = make([]byte, MinPartBytes)
		source.Read(parts[i])
	}
	parts[n-1] = parts[n-1][:MinPartBytes/3]
	return parts
}

// TestPartsInPlace: parts of one size become the object without being copied, in whatever order they arrive.
func TestPartsInPlace(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	bucket := s.bucket(t, "files")
	parts := randomParts(4)
	for name, order := range map[string][]int{"in order": {1, 2, 3, 4}, "backward": {3, 2, 1, 4}, "one": {1}} {
		u := startMultipart(t, s, bucket)
		for _, n := range order {
			u.mustPut(n, parts[n-1])
		}
		u.wantFiles(1, name)
		before, err := os.Stat(u.files()[0])
		if err != nil {
			t.Fatal(err)
		}
		u.mustComplete(parts[:len(order)])
		after, err := os.Stat(u.objectFile())
		if err != nil || !os.SameFile(before, after) {
			t.Errorf("%s: the object is a copy of its parts, %v", name, err)
		}
	}
	var running sync.WaitGroup
	u := startMultipart(t, s, bucket)
	for n, content := range parts {
		running.Go(func() {
			if err := u.put(n+1, bytes.NewReader(content), len(content)); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	u.mustComplete(parts)
}

// objectFile returns the path of the object's file.
func (u *uploading) objectFile() string {
	u.t.Helper()
	o, err := u.object(u.bucket, "k")
	if err != nil {
		u.t.Fatal(err)
	}
	directory, name := o.Blob[:8], o.Blob[9:]
	return filepath.Join(u.cfg.DataDir, Directory, "blobs", directory, name)
}

// TestPartsOutOfPlace: parts that have no place, or whose place is another's, become the object too.
func TestPartsOutOfPlace(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	bucket := s.bucket(t, "files")
	parts := randomParts(3)
	other := bytes.Repeat([]byte("other"), MinPartBytes/5)
	longer := append(bytes.Clone(other), other...)
	for name, upload := range map[string]func(u *uploading) (object [][]byte){
		"one is sent again": func(u *uploading) [][]byte {
			u.mustPut(1, other)
			u.mustPut(2, parts[1])
			u.mustPut(1, parts[0])
			u.wantFiles(2, "sent again")
			u.mustPut(1, other)
			u.mustPut(1, parts[0])
			u.wantFiles(2, "sent again and again")
			return parts[:2]
		},
		"the last comes first": func(u *uploading) [][]byte {
			for _, n := range []int{3, 1, 2} {
				u.mustPut(n, parts[n-1])
			}
			return parts
		},
		"one is longer": func(u *uploading) [][]byte {
			object := [][]byte{parts[0], longer, parts[2]}
			for n, content := range object {
				u.mustPut(n+1, content)
			}
			return object
		},
		"one is left out": func(u *uploading) [][]byte {
			for n, content := range parts {
				u.mustPut(n+1, content)
			}
			return parts[:2]
		},
		"far from the others": func(u *uploading) [][]byte {
			u.mustPut(1, parts[0])
			u.mustPut(100, other)
			u.mustPut(2, parts[1])
			for _, path := range u.files() {
				if info, err := os.Stat(path); err != nil || info.Size() > maxGap {
					t.Errorf("a file of %d bytes, %v", info.Size(), err)
				}
			}
			return parts[:2]
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := startMultipart(t, s, bucket)
			u.mustComplete(upload(u))
		})
	}
}

// TestRefusedCompletion: an upload whose completion is refused at its end goes on, with the parts that it had and others.
func TestRefusedCompletion(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	u := startMultipart(t, s, s.bucket(t, "files"))
	parts, refused := randomParts(3), errors.New("refused")
	u.mustPut(1, parts[0])
	u.mustPut(2, parts[1])
	for range 2 { // of all parts, then of some
		if err := u.completeWith(parts[:2], func() error { return refused }); !errors.Is(err, refused) {
			t.Fatal(err)
		}
		if !slices.Contains(u.numbers(), 3) {
			u.mustPut(3, parts[2])
		}
	}
	u.wantFiles(1, "after a refused completion")
	u.mustComplete(parts)
}

// TestInterruptedPart: what a part that fails has written is given back, and the part finds its place when it is sent again.
func TestInterruptedPart(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	u := startMultipart(t, s, s.bucket(t, "files"))
	parts := randomParts(3)
	u.mustPut(1, parts[0])
	occupied, err := durable.MeasureOccupied(filepath.Dir(u.files()[0]))
	if err != nil {
		t.Fatal(err)
	}
	if err := u.put(2, bytes.NewReader(parts[1][:MinPartBytes-1]), MinPartBytes); model.CodeOf(err) != model.CodeValidation {
		t.Fatalf("a part that is cut off: %v", err)
	}
	if after, err := durable.MeasureOccupied(filepath.Dir(u.files()[0])); err != nil || after > occupied {
		t.Errorf("the part's bytes take %d bytes of the disk, %v", after-occupied, err)
	}
	u.mustPut(2, parts[1])
	u.mustPut(3, parts[2])
	u.wantFiles(1, "after an interrupted part")
	u.mustComplete(parts)
}

// TestPartDuringCompletion: a part that is still being sent when the upload is completed changes nothing of the object.
func TestPartDuringCompletion(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	parts := randomParts(3)
	for name, number := range map[string]int{"beyond the end": 4, "again": 2} {
		u := startMultipart(t, s, s.bucket(t, fmt.Sprint("part-", number)))
		u.mustPut(1, parts[0])
		body, send := io.Pipe()
		late := make(chan error)
		go func() { late <- u.put(number, body, MinPartBytes) }()
		if _, err := send.Write(make([]byte, 1<<20)); err != nil { // once it is read, the part has its place
			t.Fatal(err)
		}
		u.mustPut(2, parts[1])
		u.mustPut(3, parts[2])
		if err := u.complete(parts); err != nil {
			t.Fatal(err)
		}
		if _, err := send.Write(bytes.Repeat([]byte{'x'}, MinPartBytes-1<<20)); err != nil {
			t.Fatal(err)
		}
		send.Close()
		if err := <-late; model.CodeOf(err) != model.CodeNotFound {
			t.Errorf("%s: a part that comes too late: %v", name, err)
		}
		u.mustHold(parts)
	}
}

// TestPlacesAreClosed: while a completion makes the object of the joint, nothing is written there.
func TestPlacesAreClosed(t *testing.T) {
	t.Parallel()
	p := newPlaces()
	_, release, ok := p.take("upload", 1, 5)
	if _, _, twice := p.take("upload", 1, 5); !ok || twice {
		t.Errorf("taken: %v, and twice: %v", ok, twice)
	}
	if others, second, ok := p.take("upload", 2, 5); !ok || others != 5 {
		t.Errorf("beside it: %v, %d bytes", ok, others)
	} else {
		second()
	}
	open, alone := p.close("upload")
	if alone {
		t.Error("alone while a part is written")
	}
	release()
	if _, _, ok := p.take("upload", 1, 5); ok {
		t.Error("taken while closed")
	}
	if open(); len(p.uploads)+len(p.closed) != 0 {
		t.Errorf("left: %v, %v", p.uploads, p.closed)
	}
	if open, alone = p.close("upload"); !alone {
		t.Error("not alone")
	}
	open()
}

// TestPartsAfterRestart: parts keep their places over a restart, and an aborted upload leaves nothing.
func TestPartsAfterRestart(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	bucket := s.bucket(t, "files")
	u, aborted := startMultipart(t, s, bucket), startMultipart(t, s, bucket)
	parts := randomParts(3)
	u.mustPut(2, parts[1])
	aborted.mustPut(1, parts[0])
	s.close(t)
	s.open(t)
	if err := s.RecoverUploads(false); err != nil {
		t.Fatal(err)
	}
	u.wantFiles(2, "after a restart")
	if err := s.MultipartAbort(t.Context(), s.call(model.ActionUploadDelete), bucket, "k", aborted.id); err != nil {
		t.Fatal(err)
	}
	u.mustPut(1, parts[0])
	u.mustPut(3, parts[2])
	u.wantFiles(1, "after an abort")
	u.mustComplete(parts)
}

// TestStartEndsUpload: a start after a crash whose metadata follow the journal while it is still being read, up to the
// completion of an upload, leaves nothing of the upload.
func TestStartEndsUpload(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	u := startMultipart(t, s, s.bucket(t, "files"))
	parts := randomParts(2)
	u.mustPut(1, parts[0])
	u.mustPut(2, parts[1])
	var before bytes.Buffer // what a crash would leave: the metadata and the joint as they are now
	joint, kept := u.files()[0], filepath.Join(t.TempDir(), "joint")
	if err := errors.Join(s.core.Meta.Snapshot(&before), os.Link(joint, kept)); err != nil {
		t.Fatal(err)
	}
	u.mustComplete(parts)
	s.close(t)
	metadata := filepath.Join(s.cfg.DataDir, core.MetadataFile)
	if err := errors.Join(os.WriteFile(metadata, before.Bytes(), 0o600), os.Rename(kept, joint)); err != nil {
		t.Fatal(err)
	}
	s.renew(t)
	err := s.replay(func(entries []blobstore.Entry) {
		s.deliver(entries)
		if err := s.core.Meta.ViewFlushed(func(*meta.Tx) error { return nil }); err != nil {
			t.Error(err)
		}
		s.core.Work.Wait()
	})
	if err := errors.Join(err, s.core.Begin(), s.RecoverUploads(false)); err != nil {
		t.Fatal(err)
	}
	u.mustHold(parts)
}

// TestDamagedPartIsSentAgain: an upload whose parts have to be read is not completed with a damaged one, and is once that
// was sent again.
func TestDamagedPartIsSentAgain(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	u := startMultipart(t, s, s.bucket(t, "files"))
	parts := randomParts(3)
	for n := range parts[:2] {
		parts[n] = append(parts[n], 'x') // the next one does not begin with a block
	}
	for n, content := range parts {
		u.mustPut(n+1, content)
	}
	f, err := os.OpenFile(u.files()[0], os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt([]byte{parts[1][7] ^ 1}, int64(len(parts[0])+7))
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	if err := u.complete(parts); model.CodeOf(err) != model.CodeInternal {
		t.Fatalf("a damaged part: %v", err)
	}
	u.mustPut(2, parts[1])
	u.mustComplete(parts)
}

// TestReplacedPartsCount: the bytes of a part that was replaced at its place stay in the joint, so that they count toward the
// plan until the upload ends.
func TestReplacedPartsCount(t *testing.T) {
	t.Parallel()
	const limit = 2*MinPartBytes + MinPartBytes/2
	s := openStore(t, func(c *core.Config) {
		c.Plans = map[string]model.Plan{"small": {Name: "small", Limits: map[model.Metric]int64{model.MetricStorageBytes: limit}}}
	})
	if err := s.core.Meta.Update(func(tx *meta.Tx) error {
		return tx.Organizations().Change(s.org, func(o *model.Organization) { o.Plan = "small" })
	}); err != nil {
		t.Fatal(err)
	}
	bucket := s.bucket(t, "files")
	content := randomParts(2)[0]
	replaceAll := func() *uploading {
		u := startMultipart(t, s, bucket)
		for n := 1; n <= 2; n++ {
			u.mustPut(n, content)
			u.mustPut(n, content[:2]) // to a file of its own
			u.mustPut(n, content[:3]) // and to another, for which that one is removed
		}
		u.wantStored(2*MinPartBytes+6, "replaced")
		if err := u.put(3, bytes.NewReader(content), len(content)); model.CodeOf(err) != model.CodeForbidden {
			t.Errorf("a part beyond the plan: %v", err)
		}
		return u
	}
	u := replaceAll()
	if err := s.MultipartAbort(t.Context(), s.call(model.ActionUploadDelete), bucket, "k", u.id); err != nil {
		t.Fatal(err)
	}
	u.wantStored(0, "aborted")
	u = replaceAll()
	u.mustComplete([][]byte{content[:3]})
	u.wantStored(3, "completed")
}

// wantStored checks the bytes that count toward the organization's plan.
func (u *uploading) wantStored(want int64, when string) {
	u.t.Helper()
	totals, err := meta.Value(u.core.Meta.ViewFlushed, func(tx *meta.Tx) (model.Totals, error) { return tx.Totals(u.org) })
	if got := totals.Of(model.MetricStorageBytes); err != nil || got != want {
		u.t.Errorf("%s: %d bytes count, want %d, %v", when, got, want, err)
	}
}

// TestPartLongerThanAnnounced: a body that goes on beyond its length is refused, and overwrites no other part.
func TestPartLongerThanAnnounced(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	u := startMultipart(t, s, s.bucket(t, "files"))
	parts := randomParts(3)
	u.mustPut(2, parts[1])
	long := append(slices.Clone(parts[0]), make([]byte, MinPartBytes/2)...)
	if err := u.put(1, bytes.NewReader(long), MinPartBytes); model.CodeOf(err) != model.CodeValidation {
		t.Errorf("a longer body: %v", err)
	}
	u.mustPut(1, parts[0])
	u.mustPut(3, parts[2])
	u.mustComplete(parts)
}

// TestPlacesWithoutSpaceGivenBack: where a file system keeps the bytes of failed parts, the next ones get files of their own.
func TestPlacesWithoutSpaceGivenBack(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	u := startMultipart(t, s, s.bucket(t, "files"))
	parts := randomParts(3)
	u.mustPut(1, parts[0])
	s.places.end()
	u.mustPut(2, parts[1])
	u.mustPut(3, parts[2])
	u.wantFiles(3, "without places")
	u.mustComplete(parts)
}

// TestSpaceForCompletions: a completion needs space only for what it copies, and stops when the disk is full.
func TestSpaceForCompletions(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	bucket := s.bucket(t, "files")
	const total = 200 << 20
	free := func(above int64) {
		s.space.measure = func(string) (int64, int64, error) { return total, uploadReserve(total) + above, nil }
		s.space.last.Store(nil)
	}
	free(50 << 20)
	placed := [][]byte{bytes.Repeat([]byte("a"), 6<<20), bytes.Repeat([]byte("b"), 1<<20)}
	copied := [][]byte{bytes.Repeat([]byte("a"), 5<<20), bytes.Repeat([]byte("b"), 6<<20)}
	for _, parts := range [][][]byte{placed, copied} {
		u := startMultipart(t, s, bucket)
		for i, content := range parts {
			u.mustPut(i+1, content)
		}
		if len(parts[0]) > len(parts[1]) {
			free(3 << 20)
			u.mustComplete(parts)
			free(50 << 20)
			continue
		}
		digests := []CompletedPart{{Number: 1, MD5: fmt.Sprintf("%x", md5.Sum(parts[0]))}, {Number: 2, MD5: fmt.Sprintf("%x", md5.Sum(parts[1]))}}
		fills := writerFunc(func(p []byte) (int, error) { free(0); return len(p), nil })
		_, err := s.MultipartComplete(t.Context(), s.call(model.ActionObjectUpload), Completion{
			Bucket: bucket, Key: "k", Multipart: u.id, Size: -1, Parts: digests,
			Whole: func([]model.MultipartPart) (string, io.Writer, func() (string, error)) {
				return "", fills, func() (string, error) { return "", nil }
			},
		})
		if model.CodeOf(err) != model.CodeForbidden {
			t.Errorf("a copy on a disk that becomes full: %v", err)
		}
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
