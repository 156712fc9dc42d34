package backup

import "testing"

func TestLSN(t *testing.T) {
	for _, text := range []string{"0/0", "0/2000028", "FFFFFFFF/FFFFFFFF", "16/B374D848"} {
		if p, err := parseLSN(text); err != nil || p.String() != text {
			t.Errorf("%s became %v, %v", text, p, err)
		}
	}
	for _, text := range []string{"", "/", "0", "0/", "/0", "1/123456789", "x/0", "-1/0", "0/0/0", " 0/0"} {
		if p, err := parseLSN(text); err == nil {
			t.Errorf("%q was read as %v", text, p)
		}
	}
}

func TestCovered(t *testing.T) {
	const size = 16 << 20
	segment := fileSum{size: size}
	files := contents{
		"pg_wal/0000000200000001000000FF": segment,
		"pg_wal/000000020000000200000000": segment,
		"pg_wal/00000002.history":         {size: 40},
	}
	for text, test := range map[string]struct {
		r  walRange
		ok bool
	}{
		"both":             {walRange{2, 0x1FF000028, 0x200000100}, true},
		"to the very end":  {walRange{2, 0x1FF000028, 0x201000000}, true},
		"one byte more":    {walRange{2, 0x1FF000028, 0x201000001}, false},
		"from too early":   {walRange{2, 0x1FEFFFFFF, 0x200000100}, false},
		"another timeline": {walRange{1, 0x1FF000028, 0x200000100}, false},
		"nothing":          {walRange{2, 0x1FF000028, 0x1FF000028}, false},
		"backwards":        {walRange{2, 0x200000100, 0x1FF000028}, false},
	} {
		if err := test.r.covered(files); (err == nil) != test.ok {
			t.Errorf("%s: %v", text, err)
		}
	}
	files["pg_wal/000000020000000200000000"] = fileSum{size: size / 2}
	if err := (walRange{2, 0x1FF000028, 0x200000100}).covered(files); err == nil {
		t.Error("half a segment is enough")
	}
	if err := (walRange{2, 1, 2}).covered(contents{}); err == nil {
		t.Error("no WAL at all is enough")
	}
}
