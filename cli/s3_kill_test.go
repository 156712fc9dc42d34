package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"holdfast/internal/testenv"
	"holdfast/server/api/wire"
)

const (
	// s3Clients is the number of clients that use the endpoint at a time, each with s3Keys keys of its own.
	s3Clients, s3Keys = 4, 6
	// s3Bucket and s3Versioned are the buckets: one keeps versions.
	s3Bucket, s3Versioned = "plain", "versioned"
)

// TestS3Killed kills the appliance again and again while clients of S3 store, copy and delete objects, upload in parts, and
// compete for keys that may be written once. After each start, everything that was acknowledged is there, and nothing else
// than that and what a client was never answered about; no bytes are left that belong to nothing.
func TestS3Killed(t *testing.T) {
	t.Parallel()
	rounds := 4
	switch {
	case testenv.IsAll():
		rounds = 50
	case testenv.IsLong():
		rounds = 15
	}
	k := newS3Killed(t)
	for round := range rounds {
		k.round = round
		k.load(time.Duration(20+k.random.IntN(400)) * time.Millisecond)
		if k.random.IntN(4) == 0 { // and again, while it recovers
			k.m.launch(k.flags...)
			time.Sleep(time.Duration(k.random.IntN(300)) * time.Millisecond) // the moment of the kill
			k.m.kill()
		}
		k.m.start(k.flags...)
		if k.check(); t.Failed() {
			t.Fatalf("after the kill of round %d", round)
		}
	}
	t.Logf("%d kills: %v", rounds, k.counts)
	for _, act := range s3Acts() {
		if k.counts[act.name] == 0 && rounds > 10 {
			t.Errorf("never: %s", act.name)
		}
	}
}

// s3Killed is a run: an appliance, and what its clients were told.
type s3Killed struct {
	t      *testing.T
	m      *machine
	flags  []string
	api    *minio.Core
	host   string
	access wire.StorageCredentials
	random *rand.Rand
	round  int

	mu      sync.Mutex
	objects map[s3Name]*s3State
	uploads []*s3Upload
	races   map[s3Name]*s3Race
	kept    map[s3Name]s3Kept
	counts  map[string]int // of acts that were acknowledged
}

func newS3Killed(t *testing.T) *s3Killed {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	k := &s3Killed{
		t: t, m: newMachine(t), host: freeAddress(t), random: rand.New(rand.NewPCG(seed, 0)),
		objects: map[s3Name]*s3State{}, races: map[s3Name]*s3Race{}, kept: map[s3Name]s3Kept{}, counts: map[string]int{},
	}
	k.flags = []string{"--s3-listen", k.host, "--object-trash-retention", "0"}
	k.m.start(k.flags...)
	k.m.key = createKey(t, k.m, "--preset", "full_access", "--allow-dangerous")
	k.m.must("GET", "/account/storage-credentials", nil, &k.access)
	k.api = k.client()
	for _, name := range []string{s3Bucket, s3Versioned} {
		if err := k.api.MakeBucket(t.Context(), name, minio.MakeBucketOptions{}); err != nil {
			t.Fatal(err)
		}
		for client := range s3Clients {
			for n := range s3Keys {
				k.objects[s3Name{name, fmt.Sprintf("%d/%d", client, n)}] = &s3State{}
			}
		}
	}
	if err := k.api.EnableVersioning(t.Context(), s3Versioned); err != nil {
		t.Fatal(err)
	}
	return k
}

func (k *s3Killed) client() *minio.Core {
	core, err := minio.NewCore(k.host, &minio.Options{
		Creds: credentials.NewStaticV4(k.access.AccessKeyID, k.access.SecretAccessKey, ""), Region: k.access.Region, MaxRetries: 1,
	})
	if err != nil {
		k.t.Fatal(err)
	}
	return core
}

// load has clients act for some time, and then kills the appliance. Each ends with the first request that is not answered.
func (k *s3Killed) load(life time.Duration) {
	var clients sync.WaitGroup
	killed, cancel := context.WithTimeout(k.t.Context(), applianceTime)
	defer cancel()
	for n := range s3Clients {
		c := &s3Client{s3Killed: k, n: n, api: k.client(), random: rand.New(rand.NewPCG(k.random.Uint64(), uint64(n)))}
		clients.Go(func() {
			for c.act(killed) {
			}
		})
	}
	time.Sleep(life) // the moment of the kill
	k.m.kill()
	clients.Wait()
}

// s3Name names an object.
type s3Name struct{ bucket, key string }

// s3Content is the content of an object, or of a part; the zero value is none.
type s3Content struct {
	seed uint64
	size int
}

func (c s3Content) bytes() []byte {
	text := fmt.Appendf(nil, "%d %d\n", c.seed, c.size)
	return bytes.Repeat(text, c.size/len(text)+1)[:c.size]
}

// s3State is what is known of an object.
type s3State struct {
	stored s3Content  // as it was acknowledged
	maybe  *s3Content // what the request has stored that was not answered, nil if there was none
}

// parts returns the directory with the bytes of parts.
func (k *s3Killed) parts() string { return filepath.Join(k.m.dataDir, "blobs", "parts") }
