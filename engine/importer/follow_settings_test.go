package importer

import (
	"testing"

	"holdfast/engine/postgres/postgrestest"
)

// Amounts of money are sent to a subscriber in the form in which the copy reads them, whatever the source's locale: 12.50
// written with a comma is 1250 here.
func TestSubscriberReadsMoneyInC(t *testing.T) {
	t.Parallel()
	from := newOriginOf(t, postgrestest.Binaries(t), "alter role boss set lc_monetary = 'C.UTF-8'")
	conn, err := from.source().replicate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if got := ask(t, conn, "show lc_monetary"); got != "C\n" {
		t.Errorf("money is sent in the locale %s", got)
	}
}
