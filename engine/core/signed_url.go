package core

import (
	"crypto/hmac"
	"encoding/base64"
	"strconv"
	"strings"
	"time"
)

// DownloadLife is how long a signed download URL is valid.
const DownloadLife = 15 * time.Minute

// SignedPath adds to a path, which may have a query, what lets its holder download
// subject until expires. The subject says what the query says.
func (s Signer) SignedPath(path, subject string, expires time.Time) string {
	signature := s.Sign(downloadMessage(subject, expires.Unix()))
	return path + separatorAfter(path) + "expires=" + strconv.FormatInt(expires.Unix(), 10) + "&signature=" + base64.RawURLEncoding.EncodeToString(signature)
}

// Admits reports whether target, the request target as received, is byte for byte a
// signed path to subject that has not expired. Of the spellings that decode to the
// same, only the issued one is admitted: to logs, caches and revocation lists, others
// would be other URLs.
func (s Signer) Admits(path, subject, target string, now time.Time) bool {
	rest, found := strings.CutPrefix(target, path+separatorAfter(path)+"expires=")
	seconds, _, _ := strings.Cut(rest, "&")
	at, err := strconv.ParseInt(seconds, 10, 64)
	if !found || err != nil || now.Unix() >= at {
		return false
	}
	return hmac.Equal([]byte(target), []byte(s.SignedPath(path, subject, time.Unix(at, 0))))
}

// separatorAfter returns what stands before the next parameter of a path's query.
func separatorAfter(path string) string {
	if strings.Contains(path, "?") {
		return "&"
	}
	return "?"
}

// downloadMessage returns the message to sign. It is unambiguous without lengths: the
// time cannot contain the separator.
func downloadMessage(subject string, expires int64) string {
	return "download\n" + strconv.FormatInt(expires, 10) + "\n" + subject
}
