package sigv4

import (
	"encoding/base64"
	"testing"
)

func TestAlgorithms(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"CRC32": "QWaN2w==", "CRC32C": "R/I7iQ==", "CRC64NVME": "dPVWc2vU1+Q=", "MD5": "Mb+5cwrlGvc5U7pyDIZg1w==",
		"SHA1": "YR/1TvTYOJz5gtqVFoBJBtmTibY=", "SHA256": "eXuwq/95jXIAr3aF3KeQHt/8Ur8mUA1b2XKCZY7iQVI=",
		"SHA512":   "6tQCd6X50h2wXt5deAY0eKF5Xb1LLbSvkZt+Bqczz8bd1+rH+VYZSgWhjOG4zJ41K0kLmDQxuDyOeHMKqKQGNA==",
		"XXHASH64": "vYOmFpsGXtY=", "XXHASH3": "9J6xx21X+f8=", "XXHASH128": "menoCZOCZ2Acv4XMxaUR9w==",
	}
	for _, algorithm := range Algorithms() {
		h := NewHash(algorithm)
		h.Write([]byte("dummy data"))
		sum := h.Sum(nil)
		if got := base64.StdEncoding.EncodeToString(sum); got != want[algorithm] || len(sum) != h.Size() {
			t.Errorf("%s: %s of %d bytes, want %s", algorithm, got, h.Size(), want[algorithm])
		}
	}
}
