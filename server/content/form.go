package content

import (
	"mime/multipart"
	"path"
	"strings"
)

// FileNameVariable stands for the name of the file in the key of an HTML form.
const FileNameVariable = "${filename}"

// WithFileName puts the name of a form's file in its place in a key. It reports false if the key has one, and the file
// has no name. Some browsers send a whole path.
func WithFileName(key string, file *multipart.Part) (string, bool) {
	name := path.Base(strings.ReplaceAll(file.FileName(), `\`, "/"))
	if strings.Contains(key, FileNameVariable) && (file.FileName() == "" || name == "." || name == "..") {
		return "", false
	}
	return strings.ReplaceAll(key, FileNameVariable, name), true
}
