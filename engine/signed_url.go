package engine

import (
	"encoding/base64"
	"strconv"
	"time"
)

// DownloadLife is how long a signed download URL can be used.
const DownloadLife = 15 * time.Minute

// signedPath adds to a path what lets its holder download subject until
// expires.
func (s signer) signedPath(path, subject string, expires time.Time) string {
	signature := s.sign(downloadMessage(subject, expires.Unix()))
	return path + "?expires=" + strconv.FormatInt(expires.Unix(), 10) + "&signature=" + base64.RawURLEncoding.EncodeToString(signature)
}

// admits reports whether the parameters are those of a signed path to subject
// that has not expired.
func (s signer) admits(subject, expires, signature string, now time.Time) bool {
	at, err := strconv.ParseInt(expires, 10, 64)
	if err != nil || now.Unix() >= at {
		return false
	}
	mac, err := base64.RawURLEncoding.DecodeString(signature)
	return err == nil && s.verify(downloadMessage(subject, at), mac)
}

// downloadMessage is what is signed. No length needs marking: the time cannot
// hold the separator.
func downloadMessage(subject string, expires int64) string {
	return "download\n" + strconv.FormatInt(expires, 10) + "\n" + subject
}
