package rounds

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestComparison(t *testing.T) {
	c := Compare("ours", Itself, "peer")
	speed := 1.0 // of the machine, which changes from round to round
	arm := func(name string, rate float64) Arm {
		return Arm{name, func() float64 { return rate * speed }}
	}
	for round := range 8 {
		speed = float64(round + 1)
		c.Round(arm("ours", 6), arm(Itself, 6), arm("peer", 3))
	}
	result := testing.Benchmark(func(b *testing.B) { c.Report(b, "rate") })
	for unit, want := range map[string]float64{
		"ratio:rate/itself": 1, "lowest:rate/itself": 1, "highest:rate/itself": 1,
		"ratio:rate/peer": 2, "lowest:rate/peer": 2, "highest:rate/peer": 2,
	} {
		if got := result.Extra[unit]; got != want {
			t.Errorf("%s is %g, not %g", unit, got, want)
		}
	}
	if got := c.Values("peer"); len(got) != 8 || got[7] != 24 {
		t.Errorf("the peer measured %v", got)
	}
}

func TestTable(t *testing.T) {
	table := filepath.Join(t.TempDir(), "table")
	t.Setenv(tableVariable, table)
	c := Compare("ours", Itself, "peer")
	for _, speed := range []float64{1, 2, 4} {
		arm := func(name string, rate float64) Arm { return Arm{name, func() float64 { return rate }} }
		c.Round(arm("ours", 6), arm(Itself, 5), arm("peer", 3*speed))
	}
	testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			c.Report(b, "upload-rate")
			Ratios(b, "full-stored", "peer", 0.62)
			b.SkipNow()
		}
	})
	const want = `| : upload rate | itself | 1.20 | 1.20 to 1.20, not reliable | more |
| : upload rate | peer | 1.00 | 0.50 to 2.00 | more |
| : full stored | peer | 0.62 |  | less |
`
	if got, err := os.ReadFile(table); string(got) != want {
		t.Errorf("the table is\n%s, want\n%s%v", got, want, err)
	}
}

func TestRange(t *testing.T) {
	c := Compare("ours", Itself)
	for _, itself := range []float64{4, 2, 1} {
		c.Round(Arm{"ours", func() float64 { return 2 }}, Arm{Itself, func() float64 { return itself }})
	}
	result := testing.Benchmark(func(b *testing.B) { c.Report(b, "rate") })
	got := []float64{result.Extra["lowest:rate/itself"], result.Extra["ratio:rate/itself"], result.Extra["highest:rate/itself"]}
	if want := []float64{0.5, 1, 2}; !slices.Equal(got, want) {
		t.Errorf("lowest, median and highest are %v, not %v", got, want)
	}
}

func TestOrderIsDrawn(t *testing.T) {
	c := Compare("ours", Itself, "peer")
	orders := map[string]bool{}
	for range 100 {
		order := ""
		arm := func(name string) Arm { return Arm{name, func() float64 { order += name; return 1 }} }
		c.Round(arm("ours"), arm(Itself), arm("peer"))
		orders[order] = true
	}
	if len(orders) != 6 {
		t.Errorf("a hundred rounds came in %d of 6 orders", len(orders))
	}
}

func TestWithoutItself(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a comparison without its sanity arm was taken")
		}
	}()
	Compare("ours", "peer")
}
