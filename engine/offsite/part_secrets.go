package offsite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/engine/offsite/stream"
	"holdfast/internal/durable"
)

// secretInterval is how often the secrets are compared with those of the newest checkpoint.
const secretInterval = 5 * time.Second

// tlsDirectory is the directory of the authority and the certificates.
const tlsDirectory = "tls"

// secretPart copies the small files of the data directory that nothing else has. They
// change hardly ever, and a checkpoint follows each change. One that cannot be read stays as the copy has it, and so does
// secret.key when it is missing: without it the copy is worthless, and nothing removes it.
type secretPart struct {
	dir        string
	log        *slog.Logger
	unreadable *unreadable
	changed    func() // asks for a checkpoint

	known  *known             // of the run
	cancel context.CancelFunc // set by start
	task   sync.WaitGroup

	mu   sync.Mutex
	last string // what the newest entries were made of
}

func newSecretPart(dir string, log *slog.Logger, u *unreadable, changed func()) *secretPart {
	return &secretPart{dir: dir, log: log, unreadable: u, changed: changed}
}

func (p *secretPart) start(_ *stream.Writer, known *known) error {
	ctx, cancel := context.WithCancel(context.Background())
	p.known, p.cancel, p.last = known, cancel, ""
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
	var failed error
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(p.dir, filepath.FromSlash(name)))
		if errors.Is(err, fs.ErrNotExist) && name != core.KeyFile {
			continue
		}
		if err != nil {
			err = fmt.Errorf("read the secrets: %w", err)
			failed = errors.Join(failed, err)
			if data = p.stored(name); data == nil {
				return nil, err
			}
		}
		e := stream.Entry{Kind: KindSecret, Name: name, Data: data}
		p.known.PutEntry(e)
		entries = append(entries, e)
	}
	p.unreadable.note(p.log, model.OffsiteSecrets, failed)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = print
	return entries, nil
}

// stored returns what the copy has of a secret, nil if it has none.
func (p *secretPart) stored(name string) []byte {
	for _, e := range p.known.Entries("", KindSecret) {
		if e.Name == name {
			return e.Data
		}
	}
	return nil
}
