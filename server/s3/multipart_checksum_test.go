package s3

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"testing"

	"github.com/minio/minio-go/v7"

	"holdfast/server/s3/sigv4"
)

// TestJoinedChecksum compares the checksum of an object of parts with that of its bytes, for uploads of each algorithm
// whose parts' checksums give it, without any, and with a part that was sent with another one.
func TestJoinedChecksum(t *testing.T) {
	t.Parallel()
	w := open(t)
	client := minio.Core{Client: w.minio(t, w.org.full)}
	w.ask(t, w.org.full, "PUT", "/photos", "", nil)
	contents := [][]byte{random(1, 5<<20), random(2, 5<<20), random(3, 1000)}
	for name, c := range map[string]struct {
		algorithm string // of the upload
		sent      string // that of the second part's checksum
	}{
		"none":         {},
		"another part": {sent: "CRC32"},
		"CRC32":        {algorithm: "CRC32"},
		"CRC32C":       {algorithm: "CRC32C"},
		"CRC64NVME":    {algorithm: "CRC64NVME", sent: "CRC64NVME"},
	} {
		t.Run(name, func(t *testing.T) {
			metadata := map[string]string{}
			if c.algorithm != "" {
				metadata = map[string]string{"X-Amz-Checksum-Algorithm": c.algorithm, "X-Amz-Checksum-Type": fullObject}
			}
			id, err := client.NewMultipartUpload(t.Context(), "photos", name, minio.PutObjectOptions{UserMetadata: metadata})
			if err != nil {
				t.Fatal(err)
			}
			var parts []minio.CompletePart
			for i, content := range contents {
				options := minio.PutObjectPartOptions{CustomHeader: http.Header{}}
				if i == 1 && c.sent != "" {
					options.CustomHeader.Set(sigv4.HeaderOf(c.sent), sumOf(c.sent, content))
				}
				p, err := client.PutObjectPart(t.Context(), "photos", name, id, i+1, bytes.NewReader(content), int64(len(content)), options)
				if err != nil {
					t.Fatal(err)
				}
				parts = append(parts, minio.CompletePart{PartNumber: i + 1, ETag: p.ETag})
			}
			if _, err := client.CompleteMultipartUpload(t.Context(), "photos", name, id, parts, minio.PutObjectOptions{}); err != nil {
				t.Fatal(err)
			}
			info, err := client.StatObject(t.Context(), "photos", name, minio.StatObjectOptions{Checksum: true})
			if err != nil {
				t.Fatal(err)
			}
			algorithm := c.algorithm
			if algorithm == "" {
				algorithm = sigv4.DefaultAlgorithm
			}
			got := map[string]string{"CRC32": info.ChecksumCRC32, "CRC32C": info.ChecksumCRC32C, "CRC64NVME": info.ChecksumCRC64NVME}[algorithm]
			if want := sumOf(algorithm, bytes.Join(contents, nil)); got != want {
				t.Errorf("the %s is %q, not %q", algorithm, got, want)
			}
		})
	}
}

// sumOf returns the checksum of an algorithm as S3 writes it.
func sumOf(algorithm string, content []byte) string {
	h := sigv4.NewHash(algorithm)
	h.Write(content)
	return base64.StdEncoding.EncodeToString(h.Sum(nil))
}
