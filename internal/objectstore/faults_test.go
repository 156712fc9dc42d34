package objectstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"holdfast/internal/objectstore"
	. "holdfast/internal/objectstore/objectstoretest"
)

// rig is a store behind a proxy.
type rig struct {
	*Server
	proxy  *Proxy
	bucket string
	store  objectstore.Store
}

// withFaults runs a test on every server, with a store that loses patience soon.
func withFaults(t *testing.T, test func(t *testing.T, r *rig)) {
	withPatience(t, 1500*time.Millisecond, test)
}

func withPatience(t *testing.T, patience time.Duration, test func(t *testing.T, r *rig)) {
	for _, server := range Servers(t) {
		t.Run(server.Name, func(t *testing.T) {
			t.Parallel()
			r := &rig{Server: server, proxy: NewProxy(t, server.URL), bucket: server.Bucket(t, false)}
			r.store = r.open(t, objectstore.Options{Patience: patience, HeaderTimeout: 400 * time.Millisecond, StallTimeout: 400 * time.Millisecond})
			test(t, r)
		})
	}
}

func (r *rig) open(t *testing.T, o objectstore.Options) objectstore.Store {
	o.Getenv = r.Environment(r.proxy.URL).Getenv
	s := open(t, "s3://"+r.bucket+"/p", o)
	t.Cleanup(func() { s.Close() })
	return s
}

func (r *rig) create(t *testing.T, key string, content []byte) error {
	return r.store.Create(t.Context(), key, objectstore.Bytes(content), objectstore.CreateOptions{})
}

// wants fails unless the object of the key has that content. It looks past the proxy.
func (r *rig) wants(t *testing.T, key string, content []byte) {
	t.Helper()
	s := open(t, "s3://"+r.bucket+"/p", objectstore.Options{Getenv: r.Environment("").Getenv})
	defer s.Close()
	got, err := Read(t.Context(), s, key, objectstore.Range{})
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("%s has %d bytes, %v, want %d", key, len(got), err, len(content))
	}
}

// TestPassingFaults: what passes is survived, by uploads and downloads, without a
// word to the caller.
func TestPassingFaults(t *testing.T) {
	content := Random(300_000, 1)
	uploads := map[string]Act{
		"503": SlowDown(), "early 503": AnswerEarly(503, "SlowDown"), "500": Answer(500, "InternalError"), "502": Answer(502, "BadGateway"),
		"429": Answer(429, "TooManyRequests"), "409": Answer(409, "ConditionalRequestConflict"), "408": Answer(408, "RequestTimeout"),
		"409 aborted": Answer(409, "OperationAborted"), "reset": Reset(), "reset in the middle": ResetUpload(100_000), "lost answer": LoseAnswer(),
		"silence": Silence(), "deaf": Deaf(), "wrong bytes": WrongUpload(), "repeated by a proxy": Twice(),
	}
	downloads := map[string]Act{
		"503": SlowDown(), "500": Answer(500, "InternalError"), "reset": Reset(), "half answer": HalfAnswer(),
		"stall": Stall(), "silence": Silence(), "lost answer": LoseAnswer(),
	}
	withPatience(t, 5*time.Second, func(t *testing.T, r *rig) {
		for what, act := range uploads {
			t.Run("upload "+what, func(t *testing.T) {
				key := "up/" + strings.ReplaceAll(what, " ", "-")
				r.proxy.Inject(Fault{Method: http.MethodPut, Path: key, Times: 2, Act: act})
				if err := r.create(t, key, content); err != nil {
					t.Fatal(err)
				}
				r.wants(t, key, content)
			})
		}
		if err := r.create(t, "down/a", content); err != nil {
			t.Fatal(err)
		}
		for what, act := range downloads {
			t.Run("download "+what, func(t *testing.T) {
				r.proxy.Clear()
				r.proxy.Inject(Fault{Method: http.MethodGet, Times: 2, Act: act})
				for _, part := range []objectstore.Range{{}, {Offset: 1000, Length: 200_000}} {
					want := content[part.Offset:]
					if part.Length > 0 {
						want = want[:part.Length]
					}
					got, err := Read(t.Context(), r.store, "down/a", part)
					if err != nil || !bytes.Equal(got, want) {
						t.Errorf("%+v: %d bytes, %v", part, len(got), err)
					}
				}
				r.proxy.Inject(Fault{Method: http.MethodHead, Times: 2, Act: act})
				if info, err := r.store.Stat(t.Context(), "down/a"); err != nil || info.Size != int64(len(content)) {
					t.Errorf("Stat: %+v, %v", info, err)
				}
			})
		}
	})
}

// TestListingGoesOn: a listing survives faults at any page.
func TestListingGoesOn(t *testing.T) {
	withPatience(t, 5*time.Second, func(t *testing.T, r *rig) {
		for i := range 30 {
			if err := r.create(t, fmt.Sprintf("l/%02d", i), nil); err != nil {
				t.Fatal(err)
			}
		}
		for what, act := range map[string]Act{"503": SlowDown(), "reset": Reset(), "half": HalfAnswer(), "stall": Stall()} {
			r.proxy.Inject(Fault{Path: "list-type", Times: 2, Act: act})
			n := 0
			for info, err := range r.store.List(t.Context(), "l/", "") {
				if err != nil || info.Key != fmt.Sprintf("l/%02d", n) {
					t.Fatalf("%s: %+v, %v", what, info, err)
				}
				n++
			}
			if n != 30 {
				t.Errorf("%s: %d of 30 are listed", what, n)
			}
		}
	})
}

// TestOwnSuccess: an answer that is lost after the store has stored the object is a
// success, and one of another writer is not.
func TestOwnSuccess(t *testing.T) {
	withPatience(t, 5*time.Second, func(t *testing.T, r *rig) {
		r.proxy.Inject(Fault{Method: http.MethodPut, Times: 1, Act: LoseAnswer()})
		if err := r.create(t, "own", []byte("mine")); err != nil {
			t.Errorf("an own success: %v", err)
		}
		puts := 0
		for _, q := range r.proxy.Requests() {
			if q.Method == http.MethodPut {
				puts++
			}
		}
		if puts != 2 {
			t.Errorf("%d requests, want one that lost its answer and one that met it", puts)
		}
		// The same bytes at the same key, from another writer: not ours, also where
		// the first answer is lost.
		r.proxy.Inject(Fault{Method: http.MethodPut, Times: 1, Act: Reset()})
		if err := r.create(t, "own", []byte("mine")); !errors.Is(err, objectstore.ErrExists) {
			t.Errorf("another's object of the same bytes: %v, want %v", err, objectstore.ErrExists)
		}
		// The object cannot be compared: nobody knows whose it is.
		r.proxy.Inject(Fault{Method: http.MethodPut, Times: 1, Act: LoseAnswer()}, Fault{Method: http.MethodHead, Act: Denied()})
		if err := r.create(t, "own2", []byte("mine")); !errors.Is(err, objectstore.ErrDenied) {
			t.Errorf("an object that cannot be compared: %v, want %v", err, objectstore.ErrDenied)
		}
		r.wants(t, "own", []byte("mine"))
	})
}

// TestLastingFaults: what does not pass is told in time, by its name, with the act,
// the key and the remedy, and without a secret.
func TestLastingFaults(t *testing.T) {
	withPatience(t, 300*time.Millisecond, func(t *testing.T, r *rig) {
		content := Random(100_000, 1)
		if err := r.create(t, "here", content); err != nil {
			t.Fatal(err)
		}
		for what, c := range map[string]struct {
			act    Act
			want   error
			remedy string
		}{
			"busy":          {SlowDown(), objectstore.ErrUnavailable, ""},
			"resets":        {Reset(), objectstore.ErrUnavailable, "AWS_ENDPOINT_URL"},
			"silence":       {Silence(), objectstore.ErrUnavailable, ""},
			"revoked":       {Denied(), objectstore.ErrDenied, "s3:"},
			"removed key":   {Answer(403, "InvalidAccessKeyId"), objectstore.ErrDenied, "AWS_ACCESS_KEY_ID"},
			"expired":       {Answer(400, "ExpiredToken"), objectstore.ErrDenied, "new credentials"},
			"echoed secret": {Echo(r.SecretKey), objectstore.ErrDenied, "AWS_SECRET_ACCESS_KEY"},
			"clock":         {ClockSkew(-time.Hour), objectstore.ErrClock, "NTP"},
			"bucket gone":   {NoBucket(), objectstore.ErrNoStore, "create the bucket"},
			"full":          {Full(), objectstore.ErrFull, "prune"},
			"quota":         {Quota(), objectstore.ErrFull, "quota"},
			"other region":  {Answer(400, "AuthorizationHeaderMalformed", "x-amz-bucket-region", "garage"), objectstore.ErrDenied, "AWS_REGION=garage"},
			"not supported": {Answer(501, "NotImplemented"), objectstore.ErrUnsupported, ""},
		} {
			r.proxy.Clear()
			r.proxy.Inject(Fault{Act: c.act})
			var listErr error
			for _, err := range r.store.List(t.Context(), "", "") {
				listErr = err
			}
			_, readErr := Read(t.Context(), r.store, "here", objectstore.Range{})
			for act, err := range map[string]error{"create new": r.create(t, "new", content), "list": listErr, "read here": readErr} {
				if err == nil {
					t.Errorf("%s: %s has no error", what, act)
					continue
				}
				if !errors.Is(err, c.want) {
					t.Errorf("%s: %s: %v, want %v", what, act, err, c.want)
				}
				key := strings.TrimPrefix(act, "list")
				if text := err.Error(); !strings.Contains(text, key) || !strings.Contains(text, c.remedy) || strings.Contains(text, r.SecretKey) {
					t.Errorf("%s: %s: the text lacks the act, the key or the remedy %q, or shows a secret: %s", what, act, c.remedy, text)
				}
			}
		}
	})
}

// TestStatKnowsAMissingBucket: the answer to a HEAD does not say what is missing.
func TestStatKnowsAMissingBucket(t *testing.T) {
	withFaults(t, func(t *testing.T, r *rig) {
		if _, err := r.store.Stat(t.Context(), "x"); !errors.Is(err, objectstore.ErrNotFound) {
			t.Errorf("a missing object: %v", err)
		}
		r.RemoveBucket(t, r.bucket)
		_, err := r.store.Stat(t.Context(), "x")
		for act, err := range map[string]error{"stat": err, "create": r.create(t, "x", nil), "delete": r.store.Delete(t.Context(), "x")} {
			if !errors.Is(err, objectstore.ErrNoStore) {
				t.Errorf("%s in a missing bucket: %v, want %v", act, err, objectstore.ErrNoStore)
			}
		}
	})
}

// TestRevokedInTheMiddle: credentials that end while an object is read.
func TestRevokedInTheMiddle(t *testing.T) {
	withFaults(t, func(t *testing.T, r *rig) {
		if err := r.create(t, "a", Random(300_000, 1)); err != nil {
			t.Fatal(err)
		}
		r.proxy.Inject(Fault{Method: http.MethodGet, Times: 1, Act: HalfAnswer()}, Fault{Act: Denied()})
		got, err := Read(t.Context(), r.store, "a", objectstore.Range{})
		if !errors.Is(err, objectstore.ErrDenied) || len(got) == 0 {
			t.Errorf("%d bytes, then %v, want %v", len(got), err, objectstore.ErrDenied)
		}
		r.proxy.Clear()
		r.proxy.Inject(Fault{Method: http.MethodPut, Skip: 2, Act: Denied()})
		for i, want := range []error{nil, nil, objectstore.ErrDenied, objectstore.ErrDenied} {
			if err := r.create(t, fmt.Sprint("n", i), nil); !errors.Is(err, want) {
				t.Errorf("upload %d: %v, want %v", i, err, want)
			}
		}
	})
}

// TestWrongBytes: bytes that change on the way back, or in the store, are noticed at
// the end of a whole object.
func TestWrongBytes(t *testing.T) {
	withFaults(t, func(t *testing.T, r *rig) {
		if err := r.create(t, "a", Random(300_000, 1)); err != nil {
			t.Fatal(err)
		}
		r.proxy.Inject(Fault{Method: http.MethodGet, Act: WrongBytes()})
		if _, err := Read(t.Context(), r.store, "a", objectstore.Range{}); !errors.Is(err, objectstore.ErrCorrupt) {
			t.Errorf("%v, want %v", err, objectstore.ErrCorrupt)
		}
	})
}

// TestExchangedObject: a download that goes on does not join two objects.
func TestExchangedObject(t *testing.T) {
	withFaults(t, func(t *testing.T, r *rig) {
		if err := r.create(t, "a", Random(300_000, 1)); err != nil {
			t.Fatal(err)
		}
		o, err := r.store.Get(t.Context(), "a", objectstore.Range{Length: 200_000})
		if err != nil {
			t.Fatal(err)
		}
		o.Close()
		exchange := func(x *Exchange) {
			HalfAnswer()(x)
			s := open(t, "s3://"+r.bucket+"/p", objectstore.Options{Getenv: r.Environment("").Getenv})
			defer s.Close()
			if err := errors.Join(s.Delete(context.Background(), "a"), s.Create(context.Background(), "a", objectstore.Bytes(Random(300_000, 2)), objectstore.CreateOptions{})); err != nil {
				t.Error(err)
			}
		}
		r.proxy.Inject(Fault{Method: http.MethodGet, Times: 1, Act: exchange}, Fault{Method: http.MethodGet, Act: Delay(300 * time.Millisecond)})
		if got, err := Read(t.Context(), r.store, "a", objectstore.Range{Length: 200_000}); !errors.Is(err, objectstore.ErrCorrupt) {
			t.Errorf("%d bytes, %v, want %v", len(got), err, objectstore.ErrCorrupt)
		}
	})
}

// TestRetryAfter: the store's wish is kept where patience lasts, and told where not.
func TestRetryAfter(t *testing.T) {
	withFaults(t, func(t *testing.T, r *rig) {
		r.proxy.Inject(Fault{Method: http.MethodPut, Times: 1, Act: Answer(503, "SlowDown", "Retry-After", "1")})
		began := time.Now()
		if err := r.create(t, "a", nil); err != nil || time.Since(began) < time.Second {
			t.Errorf("after %s: %v, want success after a second", time.Since(began), err)
		}
		r.proxy.Inject(Fault{Method: http.MethodPut, Act: Answer(503, "SlowDown", "Retry-After", "120")})
		err := r.create(t, "b", nil)
		if e := (*objectstore.Error)(nil); !errors.As(err, &e) || !errors.Is(err, objectstore.ErrUnavailable) || e.RetryAfter != 2*time.Minute {
			t.Errorf("%v, want %v and to come back after two minutes", err, objectstore.ErrUnavailable)
		}
	})
}

// TestPatience: a store that does not answer holds nobody up for long, and a caller
// who stops waiting is let go.
func TestPatience(t *testing.T) {
	withFaults(t, func(t *testing.T, r *rig) {
		for what, act := range map[string]Act{"busy": SlowDown(), "silent": Silence(), "deaf": Deaf()} {
			r.proxy.Clear()
			r.proxy.Inject(Fault{Act: act})
			began := time.Now()
			if err := r.create(t, "a", Random(4<<20, 1)); !errors.Is(err, objectstore.ErrUnavailable) {
				t.Errorf("%s: %v, want %v", what, err, objectstore.ErrUnavailable)
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("%s: it took %s to give up", what, took)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			began = time.Now()
			if err := r.store.Create(ctx, "a", objectstore.Bytes("x"), objectstore.CreateOptions{}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v, want %v", what, err, context.DeadlineExceeded)
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("%s: it took %s to notice the deadline", what, took)
			}
		}
	})
}

// TestSlowIsNotStalled: a transfer that takes many times the timeouts succeeds as long
// as it moves, and so does one that a limit slows down.
func TestSlowIsNotStalled(t *testing.T) {
	withFaults(t, func(t *testing.T, r *rig) {
		content := Random(200_000, 1)
		if err := r.create(t, "a", content); err != nil {
			t.Fatal(err)
		}
		r.proxy.Inject(Fault{Act: Slow(200_000)})
		began := time.Now()
		got, err := Read(t.Context(), r.store, "a", objectstore.Range{})
		if err != nil || !bytes.Equal(got, content) || time.Since(began) < 800*time.Millisecond {
			t.Errorf("after %s: %d bytes, %v", time.Since(began), len(got), err)
		}
		r.proxy.Clear()
		// Each wait for this limit is longer than a transfer may stand still.
		limited := r.open(t, objectstore.Options{
			Patience: time.Millisecond, HeaderTimeout: 400 * time.Millisecond, StallTimeout: 400 * time.Millisecond,
			Limiter: rate.NewLimiter(40_000, 32<<10),
		})
		if err := limited.Create(t.Context(), "b", objectstore.Bytes(content[:100_000]), objectstore.CreateOptions{}); err != nil {
			t.Errorf("an upload that a limit slows down: %v", err)
		}
	})
}

// TestUnconditional: a store without conditional writes is found out, and Create
// looks first.
func TestUnconditional(t *testing.T) {
	withFaults(t, func(t *testing.T, r *rig) {
		direct := open(t, "s3://"+r.bucket, objectstore.Options{Getenv: r.Environment("").Getenv})
		defer direct.Close()
		for what, act := range map[string]Act{
			"refuses": Answer(501, "NotImplemented"),
			// The condition is signed, so the proxy cannot remove it: it removes the object.
			"ignores": func(x *Exchange) {
				if err := direct.Delete(context.Background(), strings.TrimPrefix(x.Request().URL.Path, "/"+r.bucket+"/")); err != nil {
					t.Error(err)
				}
				x.Forward()
			},
		} {
			r.proxy.Clear()
			r.proxy.Inject(Fault{Method: http.MethodPut, Act: func(x *Exchange) {
				if x.Request().Header.Get("If-None-Match") == "" {
					x.Forward()
				} else {
					act(x)
				}
			}})
			found, err := r.store.Probe(t.Context())
			if err != nil || found.Conditional || !found.Checksums || !found.Metadata {
				t.Errorf("a store that %s conditions: %+v, %v", what, found, err)
			}
			s := r.open(t, objectstore.Options{Unconditional: true})
			key := "u/" + what
			for i, want := range []error{nil, objectstore.ErrExists} {
				if err := s.Create(t.Context(), key, objectstore.Bytes(fmt.Sprint(i)), objectstore.CreateOptions{}); !errors.Is(err, want) {
					t.Errorf("%s: Create number %d: %v, want %v", what, i, err, want)
				}
			}
			r.wants(t, key, []byte("0"))
		}
	})
}

// TestEndIsStable: a Read after the end says the end.
func TestEndIsStable(t *testing.T) {
	withFaults(t, func(t *testing.T, r *rig) {
		if err := r.create(t, "a", []byte("abc")); err != nil {
			t.Fatal(err)
		}
		o, err := r.store.Get(t.Context(), "a", objectstore.Range{})
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		if _, err := io.ReadAll(o); err != nil {
			t.Fatal(err)
		}
		if n, err := o.Read(make([]byte, 1)); n != 0 || err != io.EOF {
			t.Errorf("after the end: %d, %v", n, err)
		}
	})
}
