package remote

import (
	"strings"
	"testing"
	"time"
)

func TestMeterLine(t *testing.T) {
	t.Parallel()
	for want, set := range map[string]func(*meter){
		"⠋ restoring shop  3s": func(*meter) {},
		"restoring shop  [" + strings.Repeat("#", 12) + strings.Repeat("·", 12) + "]  50%  switching  3s": func(m *meter) { m.percent(50, "switching") },
		"restoring shop  [" + strings.Repeat("#", 6) + strings.Repeat("·", 18) + "]  25%  3.0 MiB of 12 MiB  1.0 MiB/s  9s left  3s": func(m *meter) {
			m.expect(12<<20, "")
			m.add(3 << 20)
		},
		"⠋ restoring shop  3.0 MiB  1.0 MiB/s  3s": func(m *meter) {
			m.expect(0, "")
			m.add(3 << 20)
		},
	} {
		m := &meter{label: "restoring shop"}
		set(m)
		if got := m.line(0, 3*time.Second); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
	if got := cut("⠋⠋⠋⠋", 2); got != "⠋⠋" {
		t.Errorf("cut: %q", got)
	}
}

func TestSize(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 10 << 10: "10 KiB", 1<<20 - 1: "1.0 MiB", 1 << 40: "1.0 TiB", 1<<63 - 1: "8.0 EiB",
	} {
		if got := size(n); got != want {
			t.Errorf("%d: %s, not %s", n, got, want)
		}
	}
}

// TestPrintable checks that untrusted text cannot control a terminal.
func TestPrintable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Größe 数":     "Größe 数",
		"a\x1b[31mb":  `a\x1b[31mb`,
		"a\r\nb":      `a\r\nb`,
		"\u009b2J":    `\u009b2J`,
		"\u202egnp":   `\u202egnp`,
		"two\u2028in": `two\u2028in`,
	} {
		if got := printable(text); got != want {
			t.Errorf("%q: %q, not %q", text, got, want)
		}
	}
}
