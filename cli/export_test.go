package cli_test

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"testing"

	"holdfast/internal/testenv"
)

type exportRecord struct {
	Status         string  `json:"status"`
	ChecksumSHA256 string  `json:"checksum_sha256"`
	SizeBytes      int64   `json:"size_bytes"`
	Filename       string  `json:"filename"`
	DownloadURL    *string `json:"download_url"`
}

// TestExportDownload downloads the export that follows a backup through its
// signed URL, also in parts and without a key.
func TestExportDownload(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start()
	db := m.createDatabase("shop")
	fill(t, m.connectionURL(db.ID))
	m.backup(db.ID)
	var x exportRecord
	testenv.Eventually(t, "the export", func() bool {
		m.must("GET", "/databases/"+db.ID+"/export", nil, &x)
		return x.Status == "ready"
	})
	whole, response := fetchRange(t, *x.DownloadURL, "")
	if sum := sha256.Sum256(whole); hex.EncodeToString(sum[:]) != x.ChecksumSHA256 || int64(len(whole)) != x.SizeBytes {
		t.Errorf("%d bytes are not those of %+v", len(whole), x)
	}
	if got := response.Header.Get("Content-Disposition"); !strings.HasPrefix(got, "attachment") || !strings.Contains(got, x.Filename) {
		t.Errorf("Content-Disposition: %s", got)
	}
	part, response := fetchRange(t, *x.DownloadURL, "bytes=5-9")
	if response.StatusCode != http.StatusPartialContent || string(part) != string(whole[5:10]) {
		t.Errorf("a range: %d %q", response.StatusCode, part)
	}
	if _, response := fetchRange(t, strings.Split(*x.DownloadURL, "?")[0], ""); response.StatusCode != http.StatusNotFound {
		t.Errorf("without its signature: %d", response.StatusCode)
	}
}

func fetchRange(t *testing.T, url, ranges string) ([]byte, *http.Response) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if ranges != "" {
		request.Header.Set("Range", ranges)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return body, response
}
