package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

// soakKeys is the number of objects of a client.
const soakKeys = 5

// soakClient is a client and what it knows of its objects.
type soakClient struct {
	*soak
	n       int
	api     *client.Client
	hangUp  func()
	objects [soakKeys]version
}

func newTransport() *http.Transport { return http.DefaultTransport.(*http.Transport).Clone() }

func (s *soak) newClient(n int) *soakClient {
	api, hangUp := s.newAPI(n)
	return &soakClient{soak: s, n: n, api: api, hangUp: hangUp}
}

// use performs one act after another.
func (c *soakClient) use(over context.Context) {
	for think(over, *soakThink); over.Err() == nil; think(over, *soakThink) {
		act := soakActs[rand.IntN(len(soakActs))]
		c.ask(act.kind, func(ctx context.Context) error { return act.do(c, ctx) })
	}
}

// soakAct is an act of a client.
type soakAct struct {
	kind string
	do   func(*soakClient, context.Context) error
}

// soakActs lists frequent acts more than once.
var soakActs = slices.Concat(
	slices.Repeat([]soakAct{{"get a database", (*soakClient).getDatabase}}, 6),
	slices.Repeat([]soakAct{{"list databases", (*soakClient).listDatabases}}, 4),
	slices.Repeat([]soakAct{{"upload", (*soakClient).upload}}, 4),
	slices.Repeat([]soakAct{{"download", (*soakClient).download}}, 4),
	slices.Repeat([]soakAct{{"put by S3", (*soakClient).putByS3}}, 2),
	slices.Repeat([]soakAct{{"get by S3", (*soakClient).getByS3}}, 2),
	slices.Repeat([]soakAct{{"upload in parts", (*soakClient).uploadByS3}}, 1),
	slices.Repeat([]soakAct{{"list objects", (*soakClient).listObjects}}, 2),
	slices.Repeat([]soakAct{{"status", (*soakClient).status}}, 2),
	slices.Repeat([]soakAct{{"a page", (*soakClient).page}}, 2),
	slices.Repeat([]soakAct{{"recovery", (*soakClient).recovery}}, 2),
	slices.Repeat([]soakAct{{"allow-list", (*soakClient).allow}}, 1),
	slices.Repeat([]soakAct{{"delete an object", (*soakClient).deleteObject}}, 1),
	slices.Repeat([]soakAct{{"advice", (*soakClient).advice}}, 1),
	slices.Repeat([]soakAct{{"usage", (*soakClient).usage}}, 1),
	slices.Repeat([]soakAct{{"audit log", (*soakClient).auditLog}}, 1),
)

func (s *soak) anyDatabase() string { return s.databases[rand.IntN(len(s.databases))] }

func (c *soakClient) getDatabase(ctx context.Context) error {
	id := c.anyDatabase()
	d, err := c.api.GetDatabase(ctx, id)
	if err == nil && (d.ID != id || d.Status != wire.DatabaseAvailable) {
		err = fmt.Errorf("%s is answered as %s, %s %s", id, d.ID, d.Status, deref(d.StatusReason))
	}
	return err
}

func (c *soakClient) listDatabases(ctx context.Context) error {
	page, err := c.api.ListDatabases(ctx, client.DatabaseOptions{ListOptions: client.ListOptions{Limit: 100}})
	if err == nil && len(page.Items) < len(c.databases) {
		err = fmt.Errorf("%d databases are listed of %d", len(page.Items), len(c.databases))
	}
	return err
}

func (c *soakClient) status(ctx context.Context) error {
	_, err := c.api.GetAgentStatus(ctx)
	return err
}

func (c *soakClient) usage(ctx context.Context) error {
	_, err := c.api.GetUsage(ctx)
	return err
}

func (c *soakClient) recovery(ctx context.Context) error {
	r, err := c.api.GetRecovery(ctx, c.anyDatabase())
	if err == nil && len(r.WALArchiving.Gaps) > 0 {
		err = fmt.Errorf("gaps in the archive: %+v", r.WALArchiving.Gaps)
	}
	return err
}

func (c *soakClient) advice(ctx context.Context) error {
	_, err := c.api.ListRecommendations(ctx, client.RecommendationOptions{})
	return err
}

func (c *soakClient) auditLog(ctx context.Context) error {
	o := client.AuditOptions{Limit: 50}
	if rand.IntN(2) == 0 {
		o.Resource = c.anyDatabase()
	}
	_, err := c.api.ListAuditLogs(ctx, o)
	return err
}

func (c *soakClient) allow(ctx context.Context) error {
	want := openLists[rand.IntN(len(openLists))]
	got, err := c.api.ReplaceDatabaseAllowlist(ctx, c.anyDatabase(), wire.ReplaceAllowlist{Entries: strings.Fields(want)})
	if err == nil && strings.Join(got.Entries, " ") != want {
		err = fmt.Errorf("the allow-list %s is answered as %s", want, got.Entries)
	}
	return err
}

// page requests a page of the console.
func (c *soakClient) page(ctx context.Context) error {
	paths := []string{"/", "/audit", "/databases/" + c.anyDatabase(), "/databases/" + c.anyDatabase() + "/backups", "/buckets/" + c.bucket}
	path := paths[rand.IntN(len(paths))]
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(c.m.api, "/v1")+path, http.NoBody)
	if err != nil {
		return err
	}
	answer, err := c.chaos.console.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && (answer.StatusCode != http.StatusOK || answer.Request.URL.Path == "/sign-in") {
		err = fmt.Errorf("%s: %s at %s: %.200s", path, answer.Status, answer.Request.URL, text)
	}
	return err
}

// objectAt is the key of a client's n-th object.
func (c *soakClient) objectAt(n int) string { return fmt.Sprintf("%d/%s", c.n, objectKey(n)) }

func (c *soakClient) upload(ctx context.Context) error {
	random := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	n, v := rand.IntN(soakKeys), newVersion(random)
	_, err := c.api.UploadObject(ctx, c.bucket, client.Upload{Key: c.objectAt(n), Body: bytes.NewReader(v.bytes()), Size: int64(v.size)})
	if err == nil {
		c.objects[n] = v
	}
	return err
}

func (c *soakClient) deleteObject(ctx context.Context) error {
	n := rand.IntN(soakKeys)
	_, err := c.api.DeleteObject(ctx, c.bucket, c.objectAt(n), "")
	if c.objects[n] == noObject && client.CodeOf(err) == wire.CodeNotFound {
		err = nil
	}
	if err == nil {
		c.objects[n] = noObject
	}
	return err
}

func (c *soakClient) listObjects(ctx context.Context) error {
	page, err := c.api.ListObjects(ctx, c.bucket, client.ObjectOptions{Prefix: fmt.Sprintf("%d/", c.n)})
	if want := c.count(); err == nil && len(page.Items) != want {
		err = fmt.Errorf("%d objects are listed of %d", len(page.Items), want)
	}
	return err
}

func (c *soakClient) count() (count int) {
	for _, v := range c.objects {
		if v != noObject {
			count++
		}
	}
	return count
}

func (c *soakClient) download(ctx context.Context) error { return c.compare(ctx, rand.IntN(soakKeys)) }

// compare downloads an object and compares it with what was last stored.
func (c *soakClient) compare(ctx context.Context, n int) error {
	record, err := c.api.GetObject(ctx, c.bucket, c.objectAt(n), "")
	if c.objects[n] == noObject && client.CodeOf(err) == wire.CodeNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	if c.objects[n] == noObject || record.ChecksumCRC32C != c.objects[n].checksum() {
		return fmt.Errorf("%s is %+v, and was %+v", c.objectAt(n), record, c.objects[n])
	}
	body, err := c.api.OpenDownload(ctx, *record.DownloadURL, "", 0)
	if err != nil {
		return err
	}
	defer body.Close()
	content, err := io.ReadAll(body)
	if err == nil && !bytes.Equal(content, c.objects[n].bytes()) {
		err = fmt.Errorf("%s has %d bytes that nobody put there", c.objectAt(n), len(content))
	}
	return err
}

// checkObjects checks that exactly the acknowledged objects exist.
func (s *soak) checkObjects() {
	total := 0
	for _, c := range s.clients {
		for n := range c.objects {
			s.ask("download", func(ctx context.Context) error { return c.compare(ctx, n) })
		}
		total += c.count()
		c.hangUp()
	}
	api, hangUp := s.newAPI(0)
	defer hangUp()
	record, err := api.GetBucket(s.t.Context(), s.bucket)
	if err != nil || record.ObjectCount != int64(total) {
		s.t.Errorf("the bucket counts %d objects of %d: %v", record.ObjectCount, total, err)
	}
	s.t.Logf("%d objects are as they were put", total)
}
