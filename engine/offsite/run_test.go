package offsite

import (
	"context"
	"errors"
	"testing"

	"holdfast/engine/offsite/stream"
)

// partOfTest counts its starts and stops.
type partOfTest struct {
	err              error
	started, stopped int
}

func (p *partOfTest) start(*stream.Writer, *known) error {
	if p.err == nil {
		p.started++
	}
	return p.err
}

func (p *partOfTest) entries(context.Context) ([]stream.Entry, error) { return nil, nil }

func (p *partOfTest) stop() { p.stopped++ }

// TestPartThatDoesNotStart: only the parts before it are stopped, once.
func TestPartThatDoesNotStart(t *testing.T) {
	t.Parallel()
	r := directoryRepository(t)
	w, err := stream.NewWriter(t.Context(), claimEpoch(t, r), stream.Options{})
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	first, second, third := &partOfTest{}, &partOfTest{err: broken}, &partOfTest{}
	s := &Service{parts: []part{first, second, third}}
	if err := s.write(t.Context(), &run{writer: w}); !errors.Is(err, broken) {
		t.Error(err)
	}
	for i, p := range []*partOfTest{first, second, third} {
		if p.stopped != p.started {
			t.Errorf("part %d was started %d times and stopped %d times", i, p.started, p.stopped)
		}
	}
}
