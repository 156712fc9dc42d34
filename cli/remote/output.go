package remote

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"holdfast/server/api/wire"
)

// show prints a result: with --json in the API's envelope, else through human.
func (t *task) show(result any, human func(io.Writer)) error { return t.showWith(nil, result, human) }

// showWith is show with additional meta fields.
func (t *task) showWith(meta map[string]any, result any, human func(io.Writer)) error {
	if !t.json {
		return Print(t.cmd.OutOrStdout(), human)
	}
	return encodeJSON(t.cmd.OutOrStdout(), envelope{result, t.meta(meta)}, "")
}

// shows returns a function that prints the result of an API call: shows(t,
// human)(call).
func shows[R any](t *task, human func(io.Writer, R)) func(R, error) error {
	return func(result R, err error) error {
		if err != nil {
			return err
		}
		return t.show(result, func(w io.Writer) { human(w, result) })
	}
}

// envelope wraps every API response, and every result with --json.
type envelope struct {
	Data any            `json:"data"`
	Meta map[string]any `json:"meta"`
}

// meta adds the id of the last request, null if there was none, to the other
// meta fields.
func (t *task) meta(besides map[string]any) map[string]any {
	meta := map[string]any{"request_id": t.requestID.Load()}
	maps.Copy(meta, besides)
	return meta
}

// whole is the meta of a complete list.
func whole() map[string]any { return map[string]any{"next_cursor": nil} }

// encodeJSON writes indented JSON, each line but the first after prefix. It
// does not escape the characters of URLs.
func encodeJSON(w io.Writer, value any, prefix string) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent(prefix, "  ")
	return encoder.Encode(value)
}

// list prints all records of an API list as a table, or a remark if there are
// none.
func list[R any](t *task, all iter.Seq2[R, error], empty string, headings []string, row func(R) []string) error {
	records, rows := []R{}, [][]string{}
	for r, err := range all {
		if err != nil {
			return err
		}
		records, rows = append(records, r), append(rows, row(r))
	}
	return t.table(whole(), records, empty, headings, rows)
}

// table prints rows below headings, or a remark if there are none.
func (t *task) table(meta map[string]any, items any, empty string, headings []string, rows [][]string) error {
	return t.showWith(meta, items, func(w io.Writer) {
		if len(rows) == 0 {
			t.note("%s", empty)
			return
		}
		columns(w, append([][]string{headings}, rows...))
	})
}

// note prints a note that is not part of the result.
func (t *task) note(format string, args ...any) {
	if !t.json {
		fmt.Fprintln(t.cmd.ErrOrStderr(), printable(fmt.Sprintf(format, args...)))
	}
}

// remarkRecoverable names the command that recovers what was deleted.
func (t *task) remarkRecoverable(deleted wire.Recoverable, command string) {
	if deleted.RecoverableUntil != nil {
		t.note("until %s it can be brought back: `holdfast trash %s`", formatTime(deleted.RecoverableUntil), command)
	}
}

// details prints names and values, without empty values.
func details(w io.Writer, pairs ...string) {
	var rows [][]string
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			rows = append(rows, pairs[i:i+2])
		}
	}
	columns(w, rows)
}

func columns(w io.Writer, rows [][]string) {
	tabs := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.StripEscape)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			if cells[i] = printable(cell); cell == "" {
				cells[i] = "-"
			}
		}
		fmt.Fprintln(tabs, strings.Join(cells, "\t"))
	}
	_ = tabs.Flush() // Print keeps w's errors
}

// printMore prints a table below others, unless it is empty.
func printMore[T any](w io.Writer, headings []string, items []T, row func(T) []string) {
	if len(items) == 0 {
		return
	}
	rows := [][]string{headings}
	for _, item := range items {
		rows = append(rows, row(item))
	}
	fmt.Fprintln(w)
	columns(w, rows)
}

// printable escapes control characters in untrusted text, as \x1b: a terminal
// interprets some of them.
func printable(text string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r) {
			b.WriteString(strings.Trim(fmt.Sprintf("%+q", r), "'"))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Plain returns a writer for text from an appliance or a file. It escapes what
// a terminal would interpret, except newlines and tabs. Write whole lines.
func Plain(w io.Writer) io.Writer { return &plain{w: w} }

// Print has human write a result to Plain, and returns w's first error.
func Print(w io.Writer, human func(io.Writer)) error {
	out := &plain{w: w}
	human(out)
	return out.err
}

// plain stops at the first error of w.
type plain struct {
	w   io.Writer
	err error
}

// Write implements io.Writer.
func (p *plain) Write(text []byte) (int, error) {
	if p.err != nil {
		return 0, p.err
	}
	var b strings.Builder
	for _, r := range string(text) {
		if r == '\n' || r == '\t' {
			b.WriteRune(r)
			continue
		}
		b.WriteString(printable(string(r)))
	}
	if _, p.err = io.WriteString(p.w, b.String()); p.err != nil {
		return 0, p.err
	}
	return len(text), nil
}

// size formats a number of bytes.
func size(n int64) string {
	const step = 1024
	if n < step {
		return fmt.Sprintf("%d B", n)
	}
	value, units := float64(n)/step, "KMGTPE"
	for value >= step-0.5 && len(units) > 1 {
		value, units = value/step, units[1:]
	}
	if value < 10 {
		return fmt.Sprintf("%.1f %ciB", value, units[0])
	}
	return fmt.Sprintf("%.0f %ciB", value, units[0])
}

// sizeOr is size for a number that may be unknown.
func sizeOr(n *int64) string {
	if n == nil {
		return ""
	}
	return size(*n)
}

// formatTime formats a time in full.
func formatTime(at *time.Time) string {
	if at == nil {
		return ""
	}
	return at.Local().Format("2006-01-02 15:04:05 MST")
}

// Ago formats the time since at, "" for nil.
func Ago(at *time.Time) string {
	if at == nil {
		return ""
	}
	return span(time.Since(*at)) + " ago"
}

// span formats a duration in its largest unit.
func span(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
}

// text dereferences p; nil gives "".
func text[T ~string](p *T) string {
	if p == nil {
		return ""
	}
	return string(*p)
}

// orNil returns nil for "", which leaves a field out of a request.
func orNil[T ~string](s T) *T {
	if s == "" {
		return nil
	}
	return &s
}

// yesNo formats a boolean.
func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
