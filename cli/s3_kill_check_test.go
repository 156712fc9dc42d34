package cli_test

import (
	"crypto/sha256"
	"io"
	"net/http"
	"strings"

	"github.com/minio/minio-go/v7"
)

// s3Kept is an object that stays as it is: nothing stores it again.
type s3Kept struct {
	sum   [sha256.Size]byte
	round int // in which it was stored
}

// s3Ages is how many rounds objects are kept that stay as they are.
const s3Ages = 3

// check compares what is stored with what clients were told.
func (k *s3Killed) check() {
	k.t.Helper()
	for name, state := range k.objects {
		k.checkObject(name, state)
	}
	for name, race := range k.races {
		k.checkRace(name, race)
	}
	k.checkLeftovers()
	for _, u := range k.uploads {
		k.checkUpload(u)
	}
	k.races, k.uploads = map[s3Name]*s3Race{}, nil
	k.checkKept()
	k.checkLeftovers()
}

// read returns an object, nil if there is none.
func (k *s3Killed) read(name s3Name) []byte {
	k.t.Helper()
	got, _, _, err := k.api.GetObject(k.t.Context(), name.bucket, name.key, minio.GetObjectOptions{})
	if minio.ToErrorResponse(err).StatusCode == http.StatusNotFound {
		return nil
	}
	if err != nil {
		k.t.Fatalf("read %s: %v", name, err)
	}
	defer got.Close()
	content, err := io.ReadAll(got)
	if err != nil {
		k.t.Fatalf("read %s: %v", name, err)
	}
	return content
}

// holds reports whether an object, as it was read, has a content.
func (c s3Content) holds(read []byte) bool {
	return (c == s3Content{}) == (read == nil) && string(c.bytes()) == string(read)
}

func (k *s3Killed) checkObject(name s3Name, state *s3State) {
	k.t.Helper()
	got := k.read(name)
	switch {
	case state.stored.holds(got):
	case state.maybe != nil && state.maybe.holds(got):
		state.stored = *state.maybe
	default:
		k.t.Errorf("%s has %d bytes, which are neither what was acknowledged (%d bytes) nor what was stored last (%+v)", name, len(got), state.stored.size, state.maybe)
	}
	state.maybe = nil
}

func (k *s3Killed) checkRace(name s3Name, race *s3Race) {
	k.t.Helper()
	got := k.read(name)
	known := false
	for _, content := range append(race.won, race.unknown...) {
		known = known || content.holds(got)
	}
	switch {
	case len(race.won) > 1:
		k.t.Errorf("%d clients were told that they stored %s, where there was nothing", len(race.won), name)
	case len(race.won) == 1 && !race.won[0].holds(got):
		k.t.Errorf("%s has %d bytes, which are not what was acknowledged", name, len(got))
	case got == nil && race.lost > 0:
		k.t.Errorf("a client was told that %s was there, and it is not", name)
	case got != nil && !known:
		k.t.Errorf("%s has %d bytes that nobody stored", name, len(got))
	case got != nil:
		k.kept[name] = s3Kept{sha256.Sum256(got), k.round}
	}
}

// checkUpload checks an upload in parts, and ends it if it has not ended.
func (k *s3Killed) checkUpload(u *s3Upload) {
	k.t.Helper()
	got := k.read(u.name)
	switch {
	case got == nil && u.completes && u.over:
		k.t.Errorf("%s was completed and is lost", u.name)
	case got == nil && !u.over:
		k.endUpload(u)
	case got != nil && !(u.completes && u.ends) || got != nil && string(got) != string(u.content()):
		k.t.Errorf("%s has %d bytes, which are not its parts", u.name, len(got))
	case got != nil:
		k.kept[u.name] = s3Kept{sha256.Sum256(got), k.round}
	}
}

// endUpload checks the parts of an upload whose end was not acknowledged. If all are there, it is completed, otherwise aborted.
func (k *s3Killed) endUpload(u *s3Upload) {
	k.t.Helper()
	if u.id == "" { // checkLeftovers aborts it
		return
	}
	listed, err := k.api.ListObjectParts(k.t.Context(), u.name.bucket, u.name.key, u.id, 0, 10)
	if gone := minio.ToErrorResponse(err).Code == "NoSuchUpload"; gone && u.ends && !u.completes {
		return
	}
	if err != nil || len(listed.ObjectParts) < len(u.parts) || len(listed.ObjectParts) > len(u.sent) {
		k.t.Errorf("%s: %d parts were acknowledged and %d sent, and there are %+v, %v", u.name, len(u.parts), len(u.sent), listed.ObjectParts, err)
		return
	}
	for i, part := range u.parts {
		if stored := listed.ObjectParts[i]; stored.PartNumber != part.PartNumber || strings.Trim(stored.ETag, `"`) != part.ETag {
			k.t.Errorf("%s: part %+v was acknowledged, and is %+v", u.name, part, stored)
		}
	}
	u.completes = len(u.parts) > 0 && len(u.parts) == len(u.sent)
	if err := k.end(k.t.Context(), u); err != nil {
		k.t.Errorf("%s cannot be ended: %v", u.name, err)
	}
	got := k.read(u.name)
	if want := u.content(); u.completes && string(got) != string(want) {
		k.t.Errorf("%s has %d bytes, and its parts have %d", u.name, len(got), len(want))
	} else if u.completes {
		k.kept[u.name] = s3Kept{sha256.Sum256(got), k.round}
	}
}

// checkKept checks what stays as it is, and deletes what is old.
func (k *s3Killed) checkKept() {
	k.t.Helper()
	for name, kept := range k.kept {
		if sha256.Sum256(k.read(name)) != kept.sum {
			k.t.Errorf("%s has changed since round %d", name, kept.round)
		}
		if kept.round+s3Ages > k.round {
			continue
		}
		delete(k.kept, name)
		if err := k.api.RemoveObject(k.t.Context(), name.bucket, name.key, minio.RemoveObjectOptions{}); err != nil {
			k.t.Errorf("delete %s: %v", name, err)
		}
	}
}
