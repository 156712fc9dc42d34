package databases

import (
	"strings"
	"testing"
	"time"
)

// TestSelectLines selects lines of a log by each filter. A continued line goes with its entry.
func TestSelectLines(t *testing.T) {
	t.Parallel()
	log := []byte(strings.Join([]string{
		"2026-01-02 03:04:05.678 UTC [12] LOG:  database system is ready to accept connections",
		"2026-01-02 03:05:05.678 UTC [13] ERROR:  relation \"orders\" does not exist at character 15",
		"2026-01-02 03:05:05.678 UTC [13] STATEMENT:  select *",
		"\tfrom orders",
		"2026-01-02 03:06:05.678 UTC [14] FATAL:  password authentication failed for user \"app\"",
	}, "\n") + "\n")
	at := func(clock string) time.Time {
		parsed, err := time.Parse("15:04:05", clock)
		if err != nil {
			t.Fatal(err)
		}
		return time.Date(2026, 1, 2, parsed.Hour(), parsed.Minute(), parsed.Second(), 0, time.UTC)
	}
	for _, test := range []struct {
		filter LogFilter
		want   string
	}{
		{LogFilter{}, "ready relation select from password"},
		{LogFilter{Level: "ERROR"}, "relation"},
		{LogFilter{Level: "STATEMENT"}, "select from"},
		{LogFilter{Search: "ORDERS"}, "relation from"},
		{LogFilter{Since: at("03:05:00")}, "relation select from password"},
		{LogFilter{Since: at("03:05:00"), Until: at("03:06:00")}, "relation select from"},
		{LogFilter{Level: "FATAL", Until: at("03:06:00")}, ""},
	} {
		var got []string
		for _, line := range selectLines(log, test.filter) {
			for _, word := range []string{"ready", "relation", "select", "from", "password"} {
				if strings.Contains(line.Text, word) {
					got = append(got, word)
					break
				}
			}
		}
		if all := strings.Join(got, " "); all != test.want {
			t.Errorf("%+v: %s, want %s", test.filter, all, test.want)
		}
	}
	if first := selectLines(log, LogFilter{})[0]; !first.At.Equal(at("03:04:05").Add(678*time.Millisecond)) || first.Level != "LOG" {
		t.Errorf("%+v", first)
	}
}
