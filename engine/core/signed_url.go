package core

import (
	"crypto/hmac"
	"encoding/base64"
	"strconv"
	"strings"
	"time"
)

// DownloadLife is how long a signed download URL can be used.
const DownloadLife = 15 * time.Minute

// SignedPath adds to a path what lets its holder download subject until
// expires.
func (s Signer) SignedPath(path, subject string, expires time.Time) string {
	signature := s.Sign(downloadMessage(subject, expires.Unix()))
	return path + "?expires=" + strconv.FormatInt(expires.Unix(), 10) + "&signature=" + base64.RawURLEncoding.EncodeToString(signature)
}

// Admits reports whether target, a request's as it came, is byte for byte a
// signed path to subject that has not expired. Of the spellings that decode to
// the same, only the one that was issued is admitted:
// others would be other URLs to logs, caches and lists of what is revoked.
func (s Signer) Admits(path, subject, target string, now time.Time) bool {
	rest, found := strings.CutPrefix(target, path+"?expires=")
	seconds, _, _ := strings.Cut(rest, "&")
	at, err := strconv.ParseInt(seconds, 10, 64)
	if !found || err != nil || now.Unix() >= at {
		return false
	}
	return hmac.Equal([]byte(target), []byte(s.SignedPath(path, subject, time.Unix(at, 0))))
}

// downloadMessage is what is signed. No length needs marking: the time cannot
// hold the separator.
func downloadMessage(subject string, expires int64) string {
	return "download\n" + strconv.FormatInt(expires, 10) + "\n" + subject
}
