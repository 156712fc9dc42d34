package cli_test

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/minio/minio-go/v7"

	"holdfast/internal/testenv"
)

// checkLeftovers looks for objects that nobody has stored, and for bytes that belong to nothing.
func (k *s3Killed) checkLeftovers() {
	k.t.Helper()
	files := 0
	for _, bucket := range []string{s3Bucket, s3Versioned} {
		for o := range k.api.Client.ListObjects(k.t.Context(), bucket, minio.ListObjectsOptions{Recursive: true, WithVersions: true}) {
			if o.Err != nil {
				k.t.Fatal(o.Err)
			}
			if o.IsLatest && !o.IsDeleteMarker && !k.knows(s3Name{bucket, o.Key}) {
				k.t.Errorf("%s/%s is there, and nobody stored it", bucket, o.Key)
			}
			if o.Size > inJournal {
				files++
			}
		}
	}
	least, most := k.filesOfParts()
	testenv.Eventually(k.t, fmt.Sprintf("only %d files of objects and %d to %d of parts", files, least, most), func() bool {
		parts := len(names(k.parts()))
		return least <= parts && parts <= most && k.m.blobs() == files+parts
	})
	if orphans := names(filepath.Join(k.m.dataDir, "quarantine")); len(orphans) > 0 {
		k.t.Errorf("in quarantine: %v", orphans)
	}
}

// knows reports whether a client has stored an object, or may have.
func (k *s3Killed) knows(name s3Name) bool {
	_, kept := k.kept[name]
	if state := k.objects[name]; state != nil {
		kept = kept || state.stored != s3Content{}
	}
	for _, u := range k.uploads {
		kept = kept || u.name == name && u.completes && u.ends
	}
	return kept
}

// filesOfParts returns how many files the parts of uploads may have: one for each upload, whose parts are in place. An upload
// whose first part was not acknowledged may have one already. It aborts uploads that no client was told of.
func (k *s3Killed) filesOfParts() (least, most int) {
	k.t.Helper()
	listed, err := k.api.ListMultipartUploads(k.t.Context(), s3Bucket, "", "", "", "", 1000)
	if err != nil {
		k.t.Fatal(err)
	}
	for _, u := range listed.Uploads {
		i := slices.IndexFunc(k.uploads, func(ours *s3Upload) bool {
			return ours.id == u.UploadID || ours.id == "" && ours.name.key == u.Key
		})
		switch {
		case i < 0:
			k.t.Errorf("an upload to %s is there, and nobody began it", u.Key)
		case k.uploads[i].over:
			k.t.Errorf("the upload to %s was ended, and is there", u.Key)
		case k.uploads[i].id == "":
			if err := k.api.AbortMultipartUpload(k.t.Context(), s3Bucket, u.Key, u.UploadID); err != nil {
				k.t.Errorf("abort an upload that nobody was told of: %v", err)
			}
		default:
			of, err := k.api.ListObjectParts(k.t.Context(), s3Bucket, u.Key, u.UploadID, 0, 10)
			if err != nil {
				k.t.Fatal(err)
			}
			if len(of.ObjectParts) > 0 {
				least++
			}
			if len(of.ObjectParts) > 0 || len(k.uploads[i].sent) > 0 {
				most++
			}
		}
	}
	return least, most
}
