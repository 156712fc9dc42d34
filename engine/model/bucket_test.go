package model

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestValidateBucketName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"abc", "a1b", "123", "my-bucket", "my.bucket.example.com", "a--b", "1.2.3", "1.2.3.4.5", "1.2.3.4a",
		strings.Repeat("a", 63), "s3alias", "ol-s3", "mrap", "xn-a", "sthree", "a.b",
	} {
		if err := ValidateBucketName("name", name); err != nil {
			t.Errorf("%q is refused: %v", name, err)
		}
	}
}

// https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
func TestValidateBucketNameRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, says string }{
		{"", "3 to 63"},
		{"ab", "3 to 63"},
		{strings.Repeat("a", 64), "3 to 63"},
		{"Bucket", "lower-case"},
		{"my_bucket", "lower-case"},
		{"my bucket", "lower-case"},
		{"my/bucket", "lower-case"},
		{"bücket", "lower-case"},
		{"-bucket", "beginning"},
		{".bucket", "beginning"},
		{"bucket-", "ending"},
		{"bucket.", "ending"},
		{"bucket\n", "lower-case"},
		{"buc\x00ket", "lower-case"},
		{"../etc", "lower-case"},
		{"my..bucket", "dots"},
		{"my.-bucket", "dots"},
		{"my-.bucket", "dots"},
		{"192.168.5.4", "IP address"},
		{"999.1.1.1", "IP address"},
		{"010.000.000.001", "IP address"},
		{"xn--bucket", "xn--"},
		{"sthree-bucket", "sthree-"},
		{"amzn-s3-demo-bucket", "amzn-s3-demo-"},
		{"bucket-s3alias", "-s3alias"},
		{"bucket--ol-s3", "--ol-s3"},
		{"bucket.mrap", ".mrap"},
		{"bucket--x-s3", "--x-s3"},
		{"bucket--table-s3", "--table-s3"},
	} {
		wantInvalid(t, ValidateBucketName("name", tt.name), "name: ", tt.says)
	}
}

func TestValidateObjectKey(t *testing.T) {
	t.Parallel()
	for _, key := range []string{
		"a", "a/", "a/b", "a//b", "/a", "/", "//", " ", "...", "a/...", ".a", "a.", "..a/b..", ". /", "%2e%2e/a", `a\..\b`,
		"é", "e\u0301", "日本語/画像.png", "👩‍👩‍👧", "a?b#c&d=e", `"quoted"`, "<script>", "\u2028", "\ufffd", "\ufeff",
		strings.Repeat("a", MaxObjectKey), strings.Repeat("é", MaxObjectKey/2), strings.Repeat("/", MaxObjectKey),
	} {
		if err := ValidateObjectKey("key", key); err != nil {
			t.Errorf("%.40q is refused: %v", key, err)
		}
	}
}

func TestValidateObjectKeyRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ key, says string }{
		{"", "empty"},
		{strings.Repeat("a", MaxObjectKey+1), "1024 bytes"},
		{strings.Repeat("é", MaxObjectKey/2) + "a", "1024 bytes"},
		{"a\xff", "UTF-8"},
		{"\xc0\xaf", "UTF-8"},     // an overlong slash
		{"\xed\xa0\x80", "UTF-8"}, // a surrogate
		{"\xf4\x90\x80\x80", "UTF-8"},
		{"é"[:1], "UTF-8"},
		{"a\x00b", "control"},
		{"a\nb", "control"},
		{"a\r", "control"},
		{"\t", "control"},
		{"\x7f", "control"},
		{"\u0085", "control"},
		{".", "segment"},
		{"..", "segment"},
		{"../a", "segment"},
		{"a/..", "segment"},
		{"a/../b", "segment"},
		{"./a", "segment"},
		{"a/./b", "segment"},
		{"/..", "segment"},
		{"a//..//b", "segment"},
	} {
		wantInvalid(t, ValidateObjectKey("key", tt.key), "key: ", tt.says)
	}
}

// TestValidateNewObjectKey: a key that XML cannot carry is refused for new objects only, so that those there are stay readable.
func TestValidateNewObjectKey(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"a\ufffeb", "\uffff"} {
		if err := ValidateObjectKey("key", key); err != nil {
			t.Errorf("%q: %v", key, err)
		}
		wantInvalid(t, ValidateNewObjectKey("key", key), "key: ", "U+FFFE")
	}
	wantInvalid(t, ValidateNewObjectKey("key", "a/.."), "key: ", "segment")
	if err := ValidateNewObjectKey("key", "a\ufffdb"); err != nil {
		t.Error(err)
	}
}

func FuzzValidateObjectKey(f *testing.F) {
	for _, seed := range []string{"a/b", "../a", "a\x00", "\xff", "a/./b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, key string) {
		if ValidateObjectKey("key", key) != nil {
			return
		}
		if len(key) == 0 || len(key) > MaxObjectKey || !utf8.ValidString(key) || strings.ContainsAny(key, "\x00\n\r\x7f") {
			t.Errorf("%q is accepted", key)
		}
		if padded := "/" + key + "/"; strings.Contains(padded, "/./") || strings.Contains(padded, "/../") {
			t.Errorf("%q is accepted", key)
		}
	})
}

// TestBucketTag: what is in a bucket does not change the tag of its settings.
func TestBucketTag(t *testing.T) {
	t.Parallel()
	b := Bucket{ID: "bucket_1", Name: "files", Versioning: VersioningEnabled}
	filled := b
	filled.ObjectCount, filled.SizeBytes, filled.NoncurrentCount, filled.NoncurrentBytes = 1, 2, 3, 4
	if filled.Tag() != b.Tag() {
		t.Error("its objects change it")
	}
	filled.Name = "other"
	if filled.Tag() == b.Tag() {
		t.Error("its name does not change it")
	}
}
