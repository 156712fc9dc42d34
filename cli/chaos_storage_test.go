package cli_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

const (
	chaosBuckets = 3
	// chaosKeys is the number of keys that a bucket's objects share.
	chaosKeys = 40
)

// chaosBucket is what is known of a bucket.
type chaosBucket struct {
	id, name string
	// whole is held exclusively by the bucket's deletion, and shared by
	// operations on objects.
	whole   sync.RWMutex
	gone    bool
	missed  bool
	objects [chaosKeys]chaosObject
}

// chaosObject is what is known of the object at a key.
type chaosObject struct {
	mu       sync.Mutex
	versions []version // each is possible; none is known to be absent
	// remembers means that the object may be lost: earlier versions stay possible.
	remembers bool
}

// version is the content of an object; the zero version means no object.
type version struct {
	seed uint64
	size int
	// Resumable uploads always create a file, even for small objects.
	resumable bool
}

// noObject means that no object exists at the key.
var noObject = version{}

func (v version) bytes() []byte {
	random := rand.NewChaCha8([32]byte{byte(v.seed), byte(v.seed >> 8), byte(v.seed >> 16), byte(v.seed >> 24), 1})
	content := make([]byte, v.size)
	_, _ = random.Read(content) // never fails
	return content
}

func (v version) checksum() string {
	sum := client.NewCRC32C()
	_, _ = sum.Write(v.bytes())
	return sum.Text()
}

// newVersion draws a content: usually small, stored in the journal, and
// sometimes large enough for a file.
func newVersion(random *rand.Rand) version {
	v := version{seed: uint64(random.Uint32()) + 1}
	switch random.IntN(8) {
	case 0:
		v.size = 65536 + random.IntN(2<<20)
	case 1:
		v.size = 65535 + random.IntN(3) // around the threshold for a file
	case 2:
		v.size = 0
	default:
		v.size = random.IntN(20000)
	}
	return v
}

// known returns the possible versions.
func (o *chaosObject) known() []version {
	if len(o.versions) == 0 {
		return []version{noObject}
	}
	return o.versions
}

// mayExist reports whether there may be an object.
func (o *chaosObject) mayExist() bool {
	return slices.ContainsFunc(o.known(), func(v version) bool { return v != noObject })
}

// mayBe reports whether the object may have the content.
func (o *chaosObject) mayBe(content []byte) bool {
	return slices.ContainsFunc(o.known(), func(v version) bool { return v != noObject && bytes.Equal(v.bytes(), content) })
}

// asked records the outcome of a request to store v.
func (o *chaosObject) asked(is outcome, v version) {
	switch {
	case is == done && !o.remembers:
		o.versions = []version{v}
	case is != refused:
		o.versions = append(slices.Clone(o.known()), v)
	}
}

// objectKey returns keys of all kinds.
func objectKey(n int) string {
	forms := []string{"plain-%d", "a folder/%d", "a//b/%d/", "Ünïcode ☃/%d", "100%%25/%d?x=#&+"}
	return fmt.Sprintf(forms[n%len(forms)], n)
}

func (c *chaos) createBucket(ctx context.Context, _ *rand.Rand, api *client.Client) bool {
	c.mu.Lock()
	full := len(c.buckets) >= chaosBuckets
	c.mu.Unlock()
	if full {
		return false
	}
	name := c.name("bucket")
	made, err := api.CreateBucket(ctx, wire.CreateBucket{Project: c.project, Name: name})
	switch c.outcome("create a bucket", err) {
	case done:
		c.mu.Lock()
		c.buckets = append(c.buckets, &chaosBucket{id: made.ID, name: name})
		c.mu.Unlock()
	case unknown:
		c.setUnsure(name, true)
	}
	return true
}

// pickBucket draws a bucket and locks it shared.
func (c *chaos) pickBucket(random *rand.Rand) *chaosBucket {
	b := c.drawBucket(random)
	if b == nil || !b.whole.TryRLock() {
		return nil
	}
	if b.gone {
		b.whole.RUnlock()
		return nil
	}
	return b
}

func (c *chaos) drawBucket(random *rand.Rand) *chaosBucket {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := random.IntN(chaosBuckets)
	if n >= len(c.buckets) {
		return nil
	}
	return c.buckets[n]
}

// deleteBucket deletes a bucket with its content, after a deletion without
// force was refused.
func (c *chaos) deleteBucket(ctx context.Context, random *rand.Rand, api *client.Client) bool {
	b := c.drawBucket(random)
	if b == nil || random.IntN(3) > 0 || !b.whole.TryLock() {
		return false
	}
	defer b.whole.Unlock()
	if b.gone {
		return false
	}
	force := random.IntN(2) == 0
	_, err := api.DeleteBucket(ctx, b.id, force)
	switch c.outcome("delete a bucket", err, wire.CodeConflict) {
	case done:
		if !force && b.holdsSomething() {
			c.t.Errorf("the bucket %s was deleted, and something was in it", b.name)
		}
		b.gone, b.missed = true, true
		c.mu.Lock()
		c.buckets = slices.DeleteFunc(c.buckets, func(o *chaosBucket) bool { return o == b })
		c.mu.Unlock()
	case unknown:
		b.gone = true
	}
	return true
}

// holdsSomething reports whether the bucket certainly has objects.
func (b *chaosBucket) holdsSomething() bool {
	for i := range b.objects {
		if !slices.Contains(b.objects[i].known(), noObject) {
			return true
		}
	}
	return false
}

func (c *chaos) updateBucket(ctx context.Context, random *rand.Rand, api *client.Client) bool {
	b := c.pickBucket(random)
	if b == nil {
		return false
	}
	defer b.whole.RUnlock()
	public := random.IntN(2) == 0
	updated, err := api.UpdateBucket(ctx, b.id, wire.UpdateBucket{Public: &public})
	if c.outcome("change a bucket", err) == done && updated.Public != public {
		c.t.Errorf("a bucket was asked to be public: %t, and is: %t", public, updated.Public)
	}
	return true
}

// pickObject draws an object and locks it.
func (c *chaos) pickObject(random *rand.Rand) (b *chaosBucket, key string, o *chaosObject) {
	if b = c.pickBucket(random); b == nil {
		return nil, "", nil
	}
	n := random.IntN(chaosKeys)
	if o = &b.objects[n]; !o.mu.TryLock() {
		b.whole.RUnlock()
		return nil, "", nil
	}
	return b, objectKey(n), o
}

func (b *chaosBucket) release(o *chaosObject) {
	o.mu.Unlock()
	b.whole.RUnlock()
}

func (c *chaos) putObject(ctx context.Context, random *rand.Rand, api *client.Client) bool {
	b, key, o := c.pickObject(random)
	if b == nil {
		return false
	}
	defer b.release(o)
	v, absent := newVersion(random), random.IntN(4) == 0
	up := client.Upload{Key: key, Body: bytes.NewReader(v.bytes()), Size: int64(v.size), IfAbsent: absent}
	if random.IntN(4) == 0 {
		up.Size = -1
	}
	_, err := api.UploadObject(ctx, b.id, up)
	var allowed []wire.ErrorCode
	if absent && o.mayExist() {
		allowed = append(allowed, wire.CodeConflict)
	}
	c.stored(key, o, c.outcome("put", err, allowed...), v, absent)
	return true
}

// stored notes the outcome of a request to store v, if absent only where there is no object.
func (c *chaos) stored(key string, o *chaosObject, is outcome, v version, absent bool) {
	if absent && is == done && !slices.Contains(o.known(), noObject) {
		c.t.Errorf("%s was replaced although it was there", key)
	}
	o.asked(is, v)
}

func (c *chaos) deleteObject(ctx context.Context, random *rand.Rand, api *client.Client) bool {
	b, key, o := c.pickObject(random)
	if b == nil {
		return false
	}
	defer b.release(o)
	remove := api.DeleteObject
	if random.IntN(2) == 0 {
		remove = api.DeleteObjectByQuery
	}
	_, err := remove(ctx, b.id, key, "")
	var allowed []wire.ErrorCode
	if slices.Contains(o.known(), noObject) {
		allowed = append(allowed, wire.CodeNotFound)
	}
	is := c.outcome("delete an object", err, allowed...)
	if is == refused && client.CodeOf(err) == wire.CodeNotFound {
		is = done
	}
	o.asked(is, noObject)
	return true
}

func (c *chaos) getObject(ctx context.Context, random *rand.Rand, api *client.Client) bool {
	b, key, o := c.pickObject(random)
	if b == nil {
		return false
	}
	defer b.release(o)
	c.compareObject(ctx, api, b, key, o)
	return true
}

// compareObject downloads an object and compares it with the possible versions.
func (c *chaos) compareObject(ctx context.Context, api *client.Client, b *chaosBucket, key string, o *chaosObject) {
	record, err := api.GetObject(ctx, b.id, key, "")
	if client.CodeOf(err) == wire.CodeNotFound {
		if !slices.Contains(o.known(), noObject) {
			c.t.Errorf("%s in %s was acknowledged and is lost: %v", key, b.name, o.known())
		}
		return
	}
	if c.outcome("get", err) != done {
		return
	}
	body, err := api.OpenDownload(ctx, *record.DownloadURL, "", 0)
	if err != nil {
		if client.CodeOf(err) != "" {
			c.t.Errorf("download %s: %v", key, err)
		}
		return
	}
	defer body.Close()
	content, err := io.ReadAll(body)
	if err == nil && !o.mayBe(content) {
		c.t.Errorf("%s in %s has %d bytes that no client stored: %v", key, b.name, len(content), o.known())
	}
}

// resumableUpload uploads by tus, in parts, and resumes after faults.
func (c *chaos) resumableUpload(ctx context.Context, random *rand.Rand, _ *client.Client) bool {
	b, key, o := c.pickObject(random)
	if b == nil {
		return false
	}
	defer b.release(o)
	v := newVersion(random)
	v.size, v.resumable = 1+random.IntN(300_000), true
	content := v.bytes()
	header := http.Header{
		"Upload-Length":   {strconv.Itoa(v.size)},
		"Upload-Metadata": {"key " + base64.StdEncoding.EncodeToString([]byte(key))},
	}
	root := strings.TrimSuffix(c.m.api, "/v1") + "/uploads/"
	made, ok := c.tus(ctx, http.MethodPost, root+b.id, header, nil)
	if !ok {
		c.mu.Lock()
		c.unsureUploads++
		c.unsureBytes += int64(v.size)
		c.mu.Unlock()
		return true
	}
	if made.StatusCode != http.StatusCreated {
		return c.tusRefused("create", made)
	}
	upload, sent := made.Header.Get("Location"), 0
	for ctx.Err() == nil {
		part := content[sent:min(len(content), sent+1+random.IntN(v.size))]
		answer, ok := c.tus(ctx, http.MethodPatch, upload, http.Header{
			"Upload-Offset": {strconv.Itoa(sent)}, "Content-Type": {"application/offset+octet-stream"},
		}, part)
		if last := sent+len(part) == len(content); last && ok && answer.StatusCode == http.StatusNoContent {
			o.asked(done, v)
			return true
		} else if last {
			o.asked(unknown, v)
		}
		if ok && answer.StatusCode == http.StatusNoContent {
			sent += len(part)
			continue
		}
		if ok && !c.tusRefused("append", answer) {
			return true
		}
		time.Sleep(50 * time.Millisecond)
		c.awaitServing(ctx)
		if answer, ok = c.tus(ctx, http.MethodHead, upload, nil, nil); !ok {
			continue
		}
		if answer.StatusCode == http.StatusLocked { // it is being completed
			continue
		}
		if answer.StatusCode != http.StatusOK {
			if len(o.known()) == 1 || o.known()[len(o.known())-1] != v {
				c.t.Errorf("an upload with %d bytes acknowledged is gone: %s", sent, answer.Status)
			}
			return true // it has ended
		}
		offset, err := strconv.Atoi(answer.Header.Get("Upload-Offset"))
		if err != nil || offset < 0 || offset > sent+len(part) {
			c.t.Errorf("an upload of which %d bytes were sent is at %q", sent+len(part), answer.Header.Get("Upload-Offset"))
			return true
		}
		if offset == len(content) { // every tus client treats this as a success
			o.asked(done, v)
			return true
		}
		sent = offset
	}
	return true
}

func (c *chaos) tus(ctx context.Context, method, url string, header http.Header, body []byte) (*http.Response, bool) {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		c.t.Error(err)
		return nil, false
	}
	if header != nil {
		request.Header = header
	}
	request.Header.Set("Tus-Resumable", "1.0.0")
	request.Header.Set("Authorization", "Bearer "+c.m.key)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, false
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer, true
}

// tusRefused checks an unsuccessful response; it always returns true if a full
// disk explains it.
func (c *chaos) tusRefused(what string, answer *http.Response) bool {
	switch answer.StatusCode {
	case http.StatusConflict, http.StatusLocked, http.StatusTooManyRequests: // another offset, or busy
		return true
	}
	if c.isDiskFull(answer.StatusCode) {
		return true
	}
	c.t.Errorf("tus: %s: %s", what, answer.Status)
	return false
}
