package core

import (
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"pgregory.net/rapid"
)

func TestFormatID(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		id := ulid.ULID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		if got, want := FormatID("db_", id), "db_"+strings.ToLower(id.String()); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

func TestRequestIDsSortByTime(t *testing.T) {
	t.Parallel()
	before := NewRequestID()
	time.Sleep(2 * time.Millisecond) // a ULID has millisecond resolution
	after := NewRequestID()
	at, err := ulid.Parse(strings.TrimPrefix(after, "req_"))
	if before >= after || err != nil || time.Since(at.Timestamp()) > time.Minute {
		t.Errorf("%s and then %s: %v", before, after, err)
	}
}
