package web

import (
	"fmt"
	"html/template"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"holdfast/engine/model"
)

// functions returns the functions of the templates.
func functions(a assets) template.FuncMap {
	return template.FuncMap{
		"asset": a.url, "integrity": a.integrity, "bytes": formatBytes, "ago": ago, "until": until, "keptFor": keptFor, "pick": pick, "stamp": stamp, "machine": machineTime,
		"count": model.Count, "words": scopeWords, "presetName": presetName, "presetHint": presetHint, "powers": powersOf, "span": span,
		"query": url.QueryEscape, "lower": strings.ToLower, "humanize": humanize, "percent": percent,
		"tenth": tenth, "link": link, "field": newConfirm, "trashed": newTrashed, "older": older, "sentence": sentence, "prose": prose, "thousands": thousands, "lasted": func(d time.Duration) string { return formatSeconds(d.Seconds()) }, "seconds": func(d *time.Duration) string { return formatSeconds(d.Seconds()) }, "clock": clock, "date": formatDate,
	}
}

// formatBytes formats a size in binary units with at most three digits.
func formatBytes(size any) string {
	var n float64
	switch s := size.(type) {
	case int64:
		n = float64(s)
	case *int64:
		if s == nil {
			return "unknown"
		}
		n = float64(*s)
	case float64:
		n = s
	}
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	i := 0
	for n >= 1000 && i < len(units)-1 {
		n /= 1024
		i++
	}
	switch {
	case i == 0 || n >= 100:
		return fmt.Sprintf("%.0f %s", n, units[i])
	case n >= 10:
		return fmt.Sprintf("%.1f %s", n, units[i])
	default:
		return fmt.Sprintf("%.2f %s", n, units[i])
	}
}

// ago formats the time since at, "never" if there is none.
func ago(at any) string {
	t, ok := moment(at)
	if !ok {
		return "never"
	}
	past := time.Since(t)
	if past < 5*time.Second {
		return "just now"
	}
	return span(past) + " ago"
}

// until formats the time left until at.
func until(at any) string {
	t, ok := moment(at)
	if !ok {
		return "never"
	}
	left := time.Until(t)
	if left <= 0 {
		return "now"
	}
	return "in " + span(left)
}

// keptFor formats how much longer something is kept.
func keptFor(at any) string {
	t, ok := moment(at)
	switch left := time.Until(t); {
	case !ok:
		return "for good"
	case left <= 0:
		return "not any longer"
	default:
		return span(left) + " more"
	}
}

func moment(at any) (time.Time, bool) {
	switch t := at.(type) {
	case time.Time:
		return t, !t.IsZero()
	case *time.Time:
		if t != nil {
			return *t, true
		}
	}
	return time.Time{}, false
}

// span formats a duration in its largest unit.
func span(d time.Duration) string {
	for _, unit := range []struct {
		name string
		size time.Duration
	}{{"day", 24 * time.Hour}, {"hour", time.Hour}, {"minute", time.Minute}} {
		if n := int64(math.Round(float64(d) / float64(unit.size))); d >= unit.size {
			return model.Count(n, unit.name)
		}
	}
	return model.Count(max(int64(d.Seconds()), 1), "second")
}

// stamp formats a time for people, in UTC.
func stamp(at any) string {
	t, ok := moment(at)
	if !ok {
		return "never"
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

// machineTime formats a time for programs.
func machineTime(at any) string {
	t, ok := moment(at)
	if !ok {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// formatDate formats a time for a date field, in UTC.
func formatDate(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.DateOnly)
}

// clock formats the time of day, in UTC.
func clock(at time.Time) string { return at.UTC().Format("15:04:05") }

// pick formats a time for a datetime field, in UTC.
func pick(at any) string {
	t, ok := moment(at)
	if !ok {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000")
}

// prose marks up text in backquotes as code.
func prose(text string) template.HTML {
	var b strings.Builder
	for i, part := range strings.Split(text, "`") {
		part = template.HTMLEscapeString(part)
		if i%2 == 1 {
			part = "<code>" + part + "</code>"
		}
		b.WriteString(part)
	}
	return template.HTML(b.String())
}

// thousands formats a number in groups of three digits.
func thousands(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// percent formats a part as a percentage of a whole.
func percent(part, whole int64) string {
	return fmt.Sprintf("%.0f %%", 100*float64(part)/float64(max(whole, 1)))
}

// humanize turns an API name into words.
func humanize(name any) string {
	return strings.NewReplacer("_", " ", ".", " ").Replace(fmt.Sprint(name))
}

// tenth returns the value below which a meter warns.
func tenth(whole any) int64 {
	switch n := whole.(type) {
	case int64:
		return n / 10
	case *int64:
		if n != nil {
			return *n / 10
		}
	}
	return 0
}

// navLink is an entry of the navigation.
type navLink struct {
	Href, Name string
	Current    bool
}

// link returns the entry for href, as seen from the page at path.
func link(path, href, name string) navLink {
	here := path == href || strings.HasPrefix(path, href+"/")
	if href == "/" {
		here = path == "/" || strings.HasPrefix(path, "/databases/")
	}
	return navLink{href, name, here}
}

// older returns the URL of the next page of the list at path, "" if there is
// none. It includes the path, because a list may be shown in response to a form
// that was posted to another path.
func older(path, next string) string {
	if next == "" {
		return ""
	}
	return path + "?" + url.Values{"cursor": {next}}.Encode()
}

// confirmField is the field in which the user types the name of what will be
// destroyed.
type confirmField struct{ Key, Name string }

func newConfirm(key any, name string) confirmField { return confirmField{fmt.Sprint(key), name} }
