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

// show prints a result: with --json in the API's envelope, else by human.
func (t *task) show(result any, human func(io.Writer)) error { return t.showWith(nil, result, human) }

// showWith is show, with what the API's meta says besides of such a result.
func (t *task) showWith(meta map[string]any, result any, human func(io.Writer)) error {
	if !t.json {
		return Print(t.cmd.OutOrStdout(), human)
	}
	return encodeJSON(t.cmd.OutOrStdout(), envelope{result, t.meta(meta)}, "")
}

// shows returns what prints the answer of a call to the API: shows(t, human)(call).
func shows[R any](t *task, human func(io.Writer, R)) func(R, error) error {
	return func(result R, err error) error {
		if err != nil {
			return err
		}
		return t.show(result, func(w io.Writer) { human(w, result) })
	}
}

// envelope is every answer of the API, and of the commands with --json.
type envelope struct {
	Data any            `json:"data"`
	Meta map[string]any `json:"meta"`
}

// meta adds the id of the last request to what else is said about a result; null
// where the appliance was not asked.
func (t *task) meta(besides map[string]any) map[string]any {
	meta := map[string]any{"request_id": t.requestID.Load()}
	maps.Copy(meta, besides)
	return meta
}

// whole is the meta of a list from its beginning to its end.
func whole() map[string]any { return map[string]any{"next_cursor": nil} }

// encodeJSON writes JSON for people and programs, each line but the first
// after prefix. URLs in it stay as they are.
func encodeJSON(w io.Writer, value any, prefix string) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent(prefix, "  ")
	return encoder.Encode(value)
}

// list prints all records of a list of the API as a table, or says that there
// are none.
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

// table prints rows below headings, or says that there are none.
func (t *task) table(meta map[string]any, items any, empty string, headings []string, rows [][]string) error {
	return t.showWith(meta, items, func(w io.Writer) {
		if len(rows) == 0 {
			t.remark("%s", empty)
			return
		}
		columns(w, append([][]string{headings}, rows...))
	})
}

// remark says something beside the result.
func (t *task) remark(format string, args ...any) {
	if !t.json {
		fmt.Fprintln(t.cmd.ErrOrStderr(), printable(fmt.Sprintf(format, args...)))
	}
}

// remarkRecoverable says with which command of the trash the operator can bring
// back what was deleted.
func (t *task) remarkRecoverable(deleted wire.Recoverable, command string) {
	if deleted.RecoverableUntil != nil {
		t.remark("until %s the operator can bring it back: `holdfast admin trash %s`", moment(deleted.RecoverableUntil), command)
	}
}

// details prints names and values, those without a value left out.
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
	_ = tabs.Flush() // Print remembers w's errors
}

// printMore prints a table below others, where there is anything in it.
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

// printable shows what others have written, control characters as \x1b: a
// terminal obeys some of them.
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

// Plain returns where text for people is to go, lines as a whole: of what an
// appliance or a file has said, nothing reaches w that a terminal would obey.
func Plain(w io.Writer) io.Writer { return &plain{w: w} }

// Print has a result for people written to Plain, and returns what w failed
// with first.
func Print(w io.Writer, human func(io.Writer)) error {
	out := &plain{w: w}
	human(out)
	return out.err
}

// plain ends with the first error of w.
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

// size writes bytes for people.
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

// sizeOr is size for what may not be known.
func sizeOr(n *int64) string {
	if n == nil {
		return ""
	}
	return size(*n)
}

// moment writes a time in full.
func moment(at *time.Time) string {
	if at == nil {
		return ""
	}
	return at.Local().Format("2006-01-02 15:04:05 MST")
}

// Ago writes how long a time is past, "" for nil.
func Ago(at *time.Time) string {
	if at == nil {
		return ""
	}
	return span(time.Since(*at)) + " ago"
}

// span writes a duration in its largest unit.
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

// text returns what p points to, "" for nil.
func text[T ~string](p *T) string {
	if p == nil {
		return ""
	}
	return string(*p)
}

// orNil returns what leaves a field out of a request for "".
func orNil[T ~string](s T) *T {
	if s == "" {
		return nil
	}
	return &s
}

// yesNo writes a truth for people.
func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
