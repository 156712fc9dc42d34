package offsite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/offsite/stream"
	"holdfast/internal/durable"
)

// secretInterval is how often the secrets are compared with those of the newest checkpoint.
const secretInterval = 5 * time.Second

// tlsDirectory is the directory of the authority and the certificates.
const tlsDirectory = "tls"

// secretPart copies the small files of the data directory that nothing else has. They
// change hardly ever, and a checkpoint follows each change.
type secretPart struct {
	dir     string
	changed func() // asks for a checkpoint

	cancel context.CancelFunc // set by start
	task   sync.WaitGroup

	mu   sync.Mutex
	last string // what the newest entries were made of
}

func newSecretPart(dir string, changed func()) *secretPart {
	return &secretPart{dir: dir, changed: changed}
}

func (p *secretPart) start(*stream.Writer, *known) error {
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel, p.last = cancel, ""
	p.task.Go(func() { p.watch(ctx) })
	return nil
}

func (p *secretPart) stop() {
	p.cancel()
	p.task.Wait()
}

func (p *secretPart) watch(ctx context.Context) {
	asked := ""
	for wait(ctx, secretInterval) {
		now, err := p.print()
		p.mu.Lock()
		last := p.last
		p.mu.Unlock()
		if err == nil && last != "" && now != last && now != asked {
			asked = now
			p.changed()
		}
	}
}

// files returns the names of the files that exist, relative to the data directory and with slashes.
func (p *secretPart) files() ([]string, error) {
	names := []string{core.KeyFile, core.WebhookSecretFile}
	entries, err := os.ReadDir(filepath.Join(p.dir, tlsDirectory))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the certificates: %w", err)
	}
	for _, e := range entries {
		if e.Type().IsRegular() && !strings.HasSuffix(e.Name(), durable.NewSuffix) {
			names = append(names, path.Join(tlsDirectory, e.Name()))
		}
	}
	return names, nil
}

// print returns a text that changes with the files.
func (p *secretPart) print() (text string, err error) {
	names, err := p.files()
	for _, name := range names {
		info, err := os.Stat(filepath.Join(p.dir, filepath.FromSlash(name)))
		if err == nil {
			text += fmt.Sprintln(name, info.Size(), info.ModTime().UnixNano())
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return text, err
}

func (p *secretPart) entries(context.Context) ([]stream.Entry, error) {
	print, err := p.print() // before the files are read
	if err != nil {
		return nil, fmt.Errorf("read the secrets: %w", err)
	}
	names, err := p.files()
	if err != nil {
		return nil, err
	}
	var entries []stream.Entry
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(p.dir, filepath.FromSlash(name)))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the secrets: %w", err)
		}
		entries = append(entries, stream.Entry{Kind: KindSecret, Name: name, Data: data})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = print
	return entries, nil
}
