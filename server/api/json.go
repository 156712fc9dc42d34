package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"holdfast/engine/model"
)

// maxDepth is the maximum nesting of a body; no body of the API needs more than 2.
const maxDepth = 16

// maxValues is the maximum number of values in a body; the longest list of the API has 200. huma makes an error
// for each value that is wrong, which takes far more memory than the value takes in the body.
const maxValues = 10_000

// jsonFormat is the format in which huma reads and writes bodies. huma reads only bodies that passed checkJSON.
func jsonFormat() huma.Format {
	return huma.Format{Marshal: writeJSON, Unmarshal: json.Unmarshal}
}

// writeJSON encodes v and writes it in one piece. It ignores write errors, because a client that has gone needs no
// response.
func writeJSON(w io.Writer, v any) error {
	text, err := encodeJSON(v)
	if err == nil {
		answer := w.(http.ResponseWriter) // huma writes to the gate's
		answer.Header()["Content-Length"] = []string{strconv.Itoa(len(text))}
		_, _ = answer.Write(text)
	}
	return err
}

// encodeJSON does not escape <, > and &: the output is never embedded in HTML.
func encodeJSON(v any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	return text.Bytes(), nil
}

// checkJSON checks that body is one JSON text that all parsers interpret alike (RFC 8259 permits duplicate names and
// broken Unicode; I-JSON, RFC 7493, forbids them), without NUL, which PostgreSQL cannot store, and of no more values
// than huma can be given.
func checkJSON(body []byte) error {
	if !utf8.Valid(body) {
		return model.Invalid("body", "must be UTF-8")
	}
	var whole json.RawMessage
	if err := json.Unmarshal(body, &whole); err != nil {
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			return model.Invalid("body", "must be one JSON object; it stops being JSON at byte %d", syntax.Offset)
		}
		return model.Invalid("body", "must be one JSON object")
	}
	if err := checkEscapes(body); err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	values := 0
	return checkNames(decoder, 0, &values)
}

// checkNames walks a valid JSON text and rejects duplicate names, deep nesting and too many values, which it counts.
func checkNames(decoder *json.Decoder, depth int, values *int) error {
	token, err := decoder.Token()
	if err != nil {
		return model.Invalid("body", "must be one JSON object")
	}
	if *values++; *values > maxValues {
		return model.Invalid("body", "must have at most %d values", maxValues)
	}
	opened, ok := token.(json.Delim)
	if !ok {
		return nil
	}
	if depth == maxDepth {
		return model.Invalid("body", "must not nest deeper than %d levels", maxDepth)
	}
	names := map[string]bool{}
	for decoder.More() {
		if opened == '{' {
			token, _ := decoder.Token()
			name, _ := token.(string)
			if names[name] {
				return model.Invalid(showName(name), "is given twice")
			}
			names[name] = true
		}
		if err := checkNames(decoder, depth+1, values); err != nil {
			return err
		}
	}
	_, err = decoder.Token() // the closing delimiter
	return err
}

// checkEscapes rejects \u0000 and halves of surrogate pairs in a valid JSON text, in which only strings contain
// backslashes.
func checkEscapes(body []byte) error {
	for i := 0; i < len(body); i++ {
		if body[i] != '\\' {
			continue
		}
		i++
		if body[i] != 'u' {
			continue
		}
		r := escaped(body[i:])
		switch {
		case r == 0:
			return model.Invalid("body", "must not have NUL characters (\\u0000)")
		case utf16.IsSurrogate(r):
			if i+5 >= len(body) || body[i+5] != '\\' || utf16.DecodeRune(r, escaped(body[i+6:])) == utf8.RuneError {
				return model.Invalid("body", "must not have halves of surrogate pairs (\\ud800 to \\udfff)")
			}
			i += 6
		}
		i += 4
	}
	return nil
}

// escaped returns the code unit of text, which begins with u and four hexadecimal digits, or -1.
func escaped(text []byte) rune {
	if len(text) < 5 || text[0] != 'u' {
		return -1
	}
	unit, err := strconv.ParseUint(string(text[1:5]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(unit)
}
