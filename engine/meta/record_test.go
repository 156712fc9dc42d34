package meta

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"holdfast/engine/model"
)

func TestRecordRoundTrip(t *testing.T) {
	t.Parallel()
	want := model.Project{ID: "proj_1", Organization: "org_1", Name: "é <&> \u2028"}
	data, err := encodeRecord(want)
	if err != nil {
		t.Fatal(err)
	}
	var got model.Project
	if err := decodeRecord("here", data, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDamagedRecordIsFound(t *testing.T) {
	t.Parallel()
	whole, err := encodeRecord(model.Project{ID: "proj_1", Name: "default"})
	if err != nil {
		t.Fatal(err)
	}
	damaged := map[string][]byte{"nothing": nil, "a header alone": whole[:recordHeader], "one byte more": append(whole[:len(whole):len(whole)], ' ')}
	for i := range whole {
		damaged["cut"+string(rune(i))] = whole[:i]
		for bit := range 8 {
			flipped := append([]byte(nil), whole...)
			flipped[i] ^= 1 << bit
			damaged["flipped"+string(rune(i*8+bit))] = flipped
		}
	}
	for name, data := range damaged {
		var record model.Project
		err := decodeRecord("projects/proj_1", data, &record)
		if damage, ok := errors.AsType[*CorruptError](err); !ok || damage.Where != "projects/proj_1" {
			t.Errorf("%q: got %v, want a CorruptError at projects/proj_1", name, err)
		}
	}
}

func FuzzDecodeRecord(f *testing.F) {
	whole, _ := encodeRecord(model.Project{ID: "proj_1"})
	f.Add(whole)
	f.Add([]byte{1, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		var record model.Project
		if decodeRecord("x", data, &record) != nil {
			return
		}
		again, err := encodeRecord(record)
		if err != nil || decodeRecord("x", again, &record) != nil {
			t.Errorf("%q decodes, and does not encode: %v", data, err)
		}
	})
}
