package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"time"
)

// assets are the static files by name. Pages request each with the hash of its
// content, so browsers may cache it forever and still load a new version.
type assets map[string]asset

type asset struct {
	content     []byte
	contentType string
	hash        string // in URLs and in the ETag
	integrity   string // in the format of integrity attributes and content security policies
}

func loadAssets() (assets, error) {
	entries, err := fs.ReadDir(files, "assets")
	if err != nil {
		return nil, fmt.Errorf("list assets: %w", err)
	}
	all := assets{}
	for _, entry := range entries {
		content, err := files.ReadFile("assets/" + entry.Name())
		if err != nil {
			return nil, fmt.Errorf("read asset: %w", err)
		}
		sum := sha256.Sum256(content)
		all[entry.Name()] = asset{
			content: content, contentType: mime.TypeByExtension(path.Ext(entry.Name())),
			hash: hex.EncodeToString(sum[:8]), integrity: "sha256-" + base64.StdEncoding.EncodeToString(sum[:]),
		}
	}
	return all, nil
}

// url returns the URL of an asset.
func (a assets) url(name string) string { return "/assets/" + name + "?v=" + a[name].hash }

// integrity returns the hash that the asset's content must have.
func (a assets) integrity(name string) string { return a[name].integrity }

// ServeHTTP implements http.Handler.
func (a assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	found, ok := a[r.PathValue("name")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", found.contentType)
	w.Header().Set("ETag", `"`+found.hash+`"`)
	w.Header().Set("Cache-Control", "no-transform") // a proxy that minifies the script would change its hash
	if r.URL.Query().Get("v") == found.hash {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable, no-transform")
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(found.content))
}
