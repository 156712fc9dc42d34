package advice

import (
	"fmt"
	"strings"
	"testing"
)

func TestMostWanted(t *testing.T) {
	t.Parallel()
	statements := []Statement{
		{Text: "select * from orders where customer = $1", TotalMS: 5},
		{Text: `SELECT "odd ""name", n FROM orders o WHERE O.Customer=$1 AND "odd ""name" in ($2) and customer < $3`, TotalMS: 3},
		{Text: "select * from reorders where city = $1", TotalMS: 100},
		{Text: "select admin from orders where cityadm in ($1)", TotalMS: 6},
		{Text: "update orders set n = $1 where city between $2 and $3", TotalMS: 2},
	}
	for _, test := range []struct {
		columns string
		want    string
		ms      float64
	}{
		{"id,customer,city", "customer", 8},
		{`id,odd "name`, `odd "name`, 3},
		{"id,city", "city", 2},
		{"id,adm", "", 0},
	} {
		if got, ms := mostCompared("orders", strings.Split(test.columns, ","), statements); got != test.want || ms != test.ms {
			t.Errorf("%s: %q, %v", test.columns, got, ms)
		}
	}
}

// BenchmarkMostWanted measures the worst case that a tenant can cause for one table.
func BenchmarkMostWanted(b *testing.B) {
	columns := make([]string, 200)
	for i := range columns {
		columns[i] = fmt.Sprint("c", i)
	}
	text := "select from t where " + strings.Repeat("c1 = $1 and ", 165)
	statements := make([]Statement, MaxStatements)
	for i := range statements {
		statements[i] = Statement{Text: text, TotalMS: 1}
	}
	for b.Loop() {
		mostCompared("t", columns, statements)
	}
}
