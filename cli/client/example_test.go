package client_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"holdfast/cli/client"
	"holdfast/server"
	"holdfast/server/api/wire"
	"holdfast/server/operator"
)

// A program needs the appliance's URL and an API key.
func Example() {
	appliance, stop := startAppliance()
	defer stop()
	ctx := context.Background()

	c, err := client.New(client.Config{URL: appliance.url, Key: appliance.key, UserAgent: "shop/1.0"})
	if err != nil {
		fmt.Println(err)
		return
	}
	status, err := c.GetAgentStatus(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("organization:", status.Organization.Name)
	fmt.Println("databases:", len(status.Databases))
	// Output:
	// organization: acme
	// databases: 0
}

// A receiver of webhooks verifies each request before it believes it, and drops events that it knows.
func ExampleVerifyWebhook() {
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	known := map[string]bool{}
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		if err != nil {
			return
		}
		event, err := client.VerifyWebhook(secret, r.Header, body)
		if err != nil {
			http.Error(w, "not signed", http.StatusUnauthorized)
			return
		}
		if !known[event.ID] {
			known[event.ID] = true
			fmt.Println(event.Type, event.Data.Resource.Name)
		}
	}))
	defer receiver.Close()

	send := func(as string) {
		answer, err := http.DefaultClient.Do(signedEvent(receiver.URL, as))
		if err != nil {
			fmt.Println(err)
			return
		}
		defer answer.Body.Close()
		fmt.Println(answer.StatusCode)
	}
	send(secret)
	send(secret) // again, as after a crash of the sender
	send("whsec_" + "c29tZWJvZHkgZWxzZSdzIGtleSE=")
	// Output:
	// backup.completed shop
	// 200
	// 200
	// 401
}

// signedEvent is a request as the appliance sends it.
func signedEvent(to, secret string) *http.Request {
	const body = `{"id":"event_1","type":"backup.completed","timestamp":"2026-01-02T03:04:05Z","data":{"resource":{"name":"shop"}}}`
	at := strconv.FormatInt(time.Now().Unix(), 10)
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("event_1." + at + "." + body))
	request, _ := http.NewRequest(http.MethodPost, to, strings.NewReader(body))
	request.Header.Set("Webhook-Id", "event_1")
	request.Header.Set("Webhook-Timestamp", at)
	request.Header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return request
}

// CreateDatabase returns when the database accepts connections. A backup is
// only begun by CreateBackup; AwaitBackup waits for its end.
func ExampleClient_CreateDatabase() {
	server := httptest.NewServer(databaseAnswers())
	defer server.Close()
	ctx := context.Background()
	c, err := client.New(client.Config{URL: server.URL, Key: "key"})
	if err != nil {
		fmt.Println(err)
		return
	}

	db, err := c.CreateDatabase(ctx, wire.CreateDatabase{Project: "prj_1", Name: "shop"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(db.Name, db.Status)
	fmt.Println(db.Credentials.ConnectionURL)

	backup, err := c.CreateBackup(ctx, db.ID)
	if err != nil {
		fmt.Println(err)
		return
	}
	backup, err = c.AwaitBackup(ctx, db.ID, backup.ID, func(op wire.Operation) {
		fmt.Printf("backup: %d%%\n", op.ProgressPercent)
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("backup:", backup.Status)
	// Output:
	// shop available
	// postgresql://app:secret@127.0.0.1:10000/shop
	// backup: 50%
	// backup: 100%
	// backup: completed
}

// An object is uploaded with the key and downloaded through its signed URL.
func ExampleClient_UploadObject() {
	appliance, stop := startAppliance()
	defer stop()
	ctx := context.Background()
	c, err := client.New(client.Config{URL: appliance.url, Key: appliance.key})
	if err != nil {
		fmt.Println(err)
		return
	}
	bucket, err := c.CreateBucket(ctx, wire.CreateBucket{Project: appliance.project, Name: "invoices"})
	if err != nil {
		fmt.Println(err)
		return
	}

	text := "42 EUR"
	object, err := c.UploadObject(ctx, bucket.ID, client.Upload{
		Key: "2026/0001.txt", Body: strings.NewReader(text), Size: int64(len(text)), ContentType: "text/plain",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(object.Key, object.SizeBytes, object.ContentType)

	body, err := c.OpenDownload(ctx, *object.DownloadURL, object.ETag, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer body.Close()
	downloaded, err := io.ReadAll(body)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(downloaded))
	// Output:
	// 2026/0001.txt 6 text/plain
	// 42 EUR
}

// A refused request is an *Error; programs branch on its code.
func ExampleCodeOf() {
	appliance, stop := startAppliance()
	defer stop()
	c, err := client.New(client.Config{URL: appliance.url, Key: appliance.key})
	if err != nil {
		fmt.Println(err)
		return
	}

	_, err = c.GetBucket(context.Background(), "bkt_missing")
	if client.CodeOf(err) == wire.CodeNotFound {
		fmt.Println("there is no such bucket")
	}
	if refusal, ok := errors.AsType[*client.Error](err); ok {
		fmt.Println(refusal.Status, refusal.Code)
	}
	// Output:
	// there is no such bucket
	// 404 not_found
}

// ListObjects returns one page and the cursor of the next; Objects walks all
// pages.
func ExampleClient_ListObjects() {
	appliance, stop := startAppliance()
	defer stop()
	ctx := context.Background()
	c, err := client.New(client.Config{URL: appliance.url, Key: appliance.key})
	if err != nil {
		fmt.Println(err)
		return
	}
	bucket, err := c.CreateBucket(ctx, wire.CreateBucket{Project: appliance.project, Name: "invoices"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, key := range []string{"a.txt", "b.txt", "c.txt"} {
		if _, err := c.UploadObject(ctx, bucket.ID, client.Upload{Key: key, Body: strings.NewReader(key), Size: -1}); err != nil {
			fmt.Println(err)
			return
		}
	}

	options := client.ObjectOptions{ListOptions: client.ListOptions{Limit: 2}}
	for {
		page, err := c.ListObjects(ctx, bucket.ID, options)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("a page of", len(page.Items))
		if page.Next == "" {
			break
		}
		options.Cursor = page.Next
	}

	for object, err := range c.Objects(ctx, bucket.ID, "") {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(object.Key)
	}
	// Output:
	// a page of 2
	// a page of 1
	// a.txt
	// b.txt
	// c.txt
}

// Events are followed until the context ends, over lost connections too.
func ExampleClient_GetEvents() {
	appliance, stop := startAppliance()
	defer stop()
	ctx := context.Background()
	c, err := client.New(client.Config{URL: appliance.url, Key: appliance.key})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := c.CreateKey(ctx, wire.CreateKey{Name: "dashboard", Preset: new(wire.PresetReadOnly)}); err != nil {
		fmt.Println(err)
		return
	}

	// A program that stored the id of the last event that it handled goes on after it.
	last := "event_0"
	for event, err := range c.GetEvents(ctx, client.EventOptions{After: last, Type: "key.*"}) {
		if errors.Is(err, client.ErrEventGap) {
			continue // some were removed before they were asked for: read the state anew
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		last = event.ID
		fmt.Println(event.Type, event.Data.Resource.Name)
		if event.Data.Resource.Name == "dashboard" {
			break
		}
	}
	// Output:
	// key.created test
	// key.created dashboard
}

// A link lets whoever has it upload without a key.
func ExampleClient_CreateUploadLink() {
	appliance, stop := startAppliance()
	defer stop()
	ctx := context.Background()
	c, err := client.New(client.Config{URL: appliance.url, Key: appliance.key})
	if err != nil {
		fmt.Println(err)
		return
	}
	bucket, err := c.CreateBucket(ctx, wire.CreateBucket{Project: appliance.project, Name: "avatars"})
	if err != nil {
		fmt.Println(err)
		return
	}
	link, err := c.CreateUploadLink(ctx, bucket.ID, wire.CreateUploadLink{
		Key: new("ann.png"), ContentType: new("image/png"), MaxBytes: new(int64(1 << 20)), ExpiresIn: new(wire.WholeNumber(60)),
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	request, err := http.NewRequestWithContext(ctx, string(link.Method), link.URL, strings.NewReader("a picture"))
	if err != nil {
		fmt.Println(err)
		return
	}
	for name, value := range link.Headers {
		request.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer answer.Body.Close()
	fmt.Println(answer.StatusCode)
	// Output: 200
}

// Filters find a record by its name in one request.
func ExampleClient_Buckets() {
	appliance, stop := startAppliance()
	defer stop()
	ctx := context.Background()
	c, err := client.New(client.Config{URL: appliance.url, Key: appliance.key})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, name := range []string{"invoices", "avatars"} {
		if _, err := c.CreateBucket(ctx, wire.CreateBucket{Project: appliance.project, Name: name}); err != nil {
			fmt.Println(err)
			return
		}
	}

	for bucket, err := range c.Buckets(ctx, client.BucketOptions{Filter: client.Filter{Project: appliance.project, Name: "avatars"}}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(bucket.Name)
	}
	// Output: avatars
}

// The audit log is exported in one request; an export that was cut off ends with an error.
func ExampleClient_ExportAuditLogs() {
	appliance, stop := startAppliance()
	defer stop()
	ctx := context.Background()
	c, err := client.New(client.Config{URL: appliance.url, Key: appliance.key})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := c.CreateBucket(ctx, wire.CreateBucket{Project: appliance.project, Name: "invoices"}); err != nil {
		fmt.Println(err)
		return
	}

	for entry, err := range c.ExportAuditLogs(ctx, client.AuditOptions{Action: "bucket.create", Since: time.Now().Add(-time.Hour)}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(entry.Action, entry.Outcome, *entry.Resource.Name)
	}
	// Output: bucket.create success invoices
}

// startAppliance serves an appliance without PostgreSQL until stop is called.
func startAppliance() (a appliance, stop func()) {
	check := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	dir, err := os.MkdirTemp("", "holdfast-example-")
	check(err)
	e, a, err := openEngine(dir)
	check(err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	a.url = "http://" + listener.Addr().String()
	serving := make(chan struct{})
	s, err := server.New(e, server.Options{
		BaseURL: a.url, OperatorSocket: filepath.Join(dir, "operator.sock"), Leases: operator.NewLeases(),
		Serving: func() { close(serving) }, Log: slog.New(slog.DiscardHandler),
	})
	check(err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, listener, nil) }()
	select {
	case <-serving:
	case err := <-ended:
		panic(err)
	}
	return a, func() {
		cancel()
		check(errors.Join(<-ended, closeEngine(e), os.RemoveAll(dir)))
	}
}

// databaseAnswers responds like an appliance that has PostgreSQL.
func databaseAnswers() http.Handler {
	answer := func(w http.ResponseWriter, data any) {
		_ = json.NewEncoder(w).Encode(wire.Envelope[any, wire.Meta]{Data: data}) // the example fails without a response
	}
	status := wire.BackupRunning
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/databases", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, wire.CreatedDatabase{
			Database:    wire.Database{ID: "db_1", Name: "shop", Status: wire.DatabaseAvailable},
			Credentials: wire.Credentials{Username: "app", ConnectionURL: "postgresql://app:secret@127.0.0.1:10000/shop"},
		})
	})
	mux.HandleFunc("POST /v1/databases/db_1/backups", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, wire.Backup{ID: "bkp_1", DatabaseID: "db_1", Status: wire.BackupPending})
	})
	mux.HandleFunc("GET /v1/databases/db_1/backups/bkp_1", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, wire.Backup{ID: "bkp_1", DatabaseID: "db_1", Status: status})
	})
	mux.HandleFunc("GET /v1/operations", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, []wire.Operation{{ID: "op_1", Type: wire.OperationBackup, Status: wire.OperationRunning, BackupID: new("bkp_1")}})
	})
	mux.HandleFunc("GET /v1/operations/op_1/events", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, op := range []wire.Operation{{Status: wire.OperationRunning, ProgressPercent: 50}, {Status: wire.OperationCompleted, ProgressPercent: 100}} {
			text, _ := json.Marshal(op)
			fmt.Fprintf(w, "event: operation\ndata: %s\n\n", text)
		}
		status = wire.BackupCompleted
	})
	return mux
}
