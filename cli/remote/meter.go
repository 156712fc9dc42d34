package remote

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// meter shows progress in one line of a terminal: a bar if the total is known,
// else a spinner. Without a terminal it shows nothing. It must be stopped
// exactly once.
type meter struct {
	out   *os.File // nil shows nothing
	label string
	start time.Time
	stopc chan struct{}
	ended sync.WaitGroup

	mu          sync.Mutex
	done, total int64 // total 0 means unknown
	bytes       bool  // done and total are bytes, not percent
	note        string
}

// meter starts a meter with a label.
func (t *task) meter(label string) *meter {
	m := &meter{label: label, start: time.Now(), stopc: make(chan struct{})}
	if file, ok := t.cmd.ErrOrStderr().(*os.File); ok && !t.json && term.IsTerminal(int(file.Fd())) {
		m.out = file
		m.ended.Go(m.run)
	}
	return m
}

// percent sets the progress and the current step.
func (m *meter) percent(percent int, note string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done, m.total, m.note = int64(percent), 100, note
}

// expect sets the expected number of bytes.
func (m *meter) expect(total int64, note string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.total, m.bytes, m.note = total, true, note
}

// add adds n bytes to those done.
func (m *meter) add(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done += n
}

// stop clears the line.
func (m *meter) stop() {
	close(m.stopc)
	m.ended.Wait()
}

const (
	frame      = 100 * time.Millisecond
	clearLine  = "\r\x1b[K"
	barWidth   = 24
	plainWidth = 80
)

func (m *meter) run() {
	ticker := time.NewTicker(frame)
	defer ticker.Stop()
	for turn := 0; ; turn++ {
		fmt.Fprint(m.out, clearLine+cut(m.line(turn, time.Since(m.start)), m.width()))
		select {
		case <-m.stopc:
			fmt.Fprint(m.out, clearLine)
			return
		case <-ticker.C:
		}
	}
}

func (m *meter) width() int {
	width, _, err := term.GetSize(int(m.out.Fd()))
	if err != nil || width <= 1 {
		return plainWidth - 1
	}
	return width - 1
}

func cut(line string, width int) string {
	if runes := []rune(line); len(runes) > width {
		return string(runes[:width])
	}
	return line
}

// line returns the line to show: "restoring shop  [####····] 50%  switching
// 3s".
func (m *meter) line(turn int, elapsed time.Duration) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	parts := []string{printable(m.label)}
	if m.total > 0 {
		part := min(float64(m.done)/float64(m.total), 1)
		filled := int(part * barWidth)
		parts = append(parts, fmt.Sprintf("[%s%s] %3.0f%%", strings.Repeat("#", filled), strings.Repeat("·", barWidth-filled), part*100))
	} else {
		parts[0] = string([]rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")[turn%10]) + " " + parts[0]
	}
	if m.bytes {
		parts = append(parts, m.amount(elapsed)...)
	}
	if m.note != "" {
		parts = append(parts, printable(m.note))
	}
	return strings.Join(append(parts, span(elapsed)), "  ")
}

// amount returns the bytes done and expected, the speed, and the time left.
func (m *meter) amount(elapsed time.Duration) []string {
	amount := size(m.done)
	if m.total > 0 {
		amount += " of " + size(m.total)
	}
	speed := float64(m.done) / max(elapsed.Seconds(), 0.001)
	parts := []string{amount, size(int64(speed)) + "/s"}
	if left := m.total - m.done; left > 0 && speed > 0 && elapsed > time.Second {
		parts = append(parts, span(time.Duration(float64(left)/speed*float64(time.Second)))+" left")
	}
	return parts
}

// metered counts the bytes read.
type metered struct {
	io.Reader
	meter *meter
}

// Read implements io.Reader.
func (r metered) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.meter.add(int64(n))
	return n, err
}
