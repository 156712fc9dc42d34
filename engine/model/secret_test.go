package model

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"html/template"
	"log/slog"
	"strings"
	"testing"
	texttemplate "text/template"
)

const seen = "hunter2-correct-horse"

// holder has a secret in an unexported field, where fmt may not call its methods.
type holder struct {
	Name     string
	password Secret
	inner    struct{ deeper [1]Secret }
}

func secrets() map[string]any {
	s := NewSecret(seen)
	h := holder{Name: "ada", password: s}
	h.inner.deeper[0] = s
	return map[string]any{
		"value":      s,
		"pointer":    &s,
		"slice":      []Secret{s},
		"map value":  map[string]Secret{"password": s},
		"any":        []any{s},
		"exported":   struct{ Password Secret }{s},
		"unexported": h,
		"pointed to": &h,
		"pointers":   []*Secret{&s},
		"wrapped":    fmt.Errorf("sign in with %v", s),
	}
}

func TestSecretNeverPrints(t *testing.T) {
	t.Parallel()
	verbs := []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "% x", "%#q", "%d", "%t", "%c", "%U", "%f", "%p", "%T", "%w", "%z", "%10.3s", "%-40v|"}
	for name, value := range secrets() {
		for _, verb := range verbs {
			expectHidden(t, name+" "+verb, fmt.Sprintf(verb, value))
		}
		for _, wrong := range []string{"no verb", "%*d", "%[2]v", "%!", "%"} {
			expectHidden(t, name+" "+wrong, fmt.Sprintf(wrong, value))
		}
		expectHidden(t, name+" Sprint", fmt.Sprint(value))
		expectHidden(t, name+" Sprintln", fmt.Sprintln("x", value))
	}
}

func TestSecretNeverEncodes(t *testing.T) {
	t.Parallel()
	for name, value := range secrets() {
		if data, err := json.Marshal(value); err == nil {
			expectHidden(t, name+" JSON", string(data))
		}
		if data, err := xml.Marshal(value); err == nil {
			expectHidden(t, name+" XML", string(data))
		}
		expectHidden(t, name+" text template", execute(t, texttemplate.Must(texttemplate.New("").Parse("{{.}}")), value))
		expectHidden(t, name+" HTML template", execute(t, template.Must(template.New("").Parse(`<a href="{{.}}">{{.}}</a><script>x={{.}}</script>`)), value))
	}
}

func TestSecretNeverLogs(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	for _, handler := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		log := slog.New(handler)
		for name, value := range secrets() {
			out.Reset()
			log.Error("a message", "value", value, slog.Group("group", "value", value))
			log.With("value", value).Info("another")
			expectHidden(t, fmt.Sprintf("%s %T", name, handler), out.String())
		}
	}
}

func execute(t *testing.T, tmpl any, value any) string {
	t.Helper()
	var out bytes.Buffer
	var err error
	switch tmpl := tmpl.(type) {
	case *texttemplate.Template:
		err = tmpl.Execute(&out, value)
	case *template.Template:
		err = tmpl.Execute(&out, value)
	}
	if err != nil {
		return err.Error()
	}
	return out.String()
}

func expectHidden(t *testing.T, how, printed string) {
	t.Helper()
	hex := fmt.Sprintf("%x", seen)
	for _, leak := range []string{seen, hex, strings.ToUpper(hex), "hunter2", "68756e74", "68 75 6e", "hun"} {
		if strings.Contains(printed, leak) {
			t.Errorf("%s shows the secret: %s", how, printed)
			return
		}
	}
}

func TestSecretSaysThatItHides(t *testing.T) {
	t.Parallel()
	s := NewSecret(seen)
	data, err := json.Marshal(s)
	if err != nil || string(data) != `"[redacted]"` {
		t.Errorf("JSON is %s, %v", data, err)
	}
	for _, got := range []string{s.String(), fmt.Sprint(s), fmt.Sprintf("%#v", s), s.LogValue().String()} {
		if got != "[redacted]" {
			t.Errorf("printed %q, want [redacted]", got)
		}
	}
}

func TestSecretReveal(t *testing.T) {
	t.Parallel()
	if got := NewSecret(seen).Reveal(); got != seen {
		t.Errorf("Reveal gives %q", got)
	}
	if got := (Secret{}).Reveal(); got != "" {
		t.Errorf("the zero Secret reveals %q", got)
	}
	for _, tt := range []struct {
		secret Secret
		zero   bool
	}{{Secret{}, true}, {NewSecret(""), true}, {NewSecret(" "), false}} {
		if tt.secret.IsZero() != tt.zero {
			t.Errorf("IsZero of %q is %v", tt.secret.Reveal(), tt.secret.IsZero())
		}
	}
}
