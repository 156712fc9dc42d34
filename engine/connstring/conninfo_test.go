package connstring

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"holdfast/engine/model"
)

// A driver reads back from Conninfo what went in, whatever characters it has.
func TestConninfo(t *testing.T) {
	for _, word := range []string{"plain", "it's", `a\b`, `'`, `\`, "two words", "ü=1", `\' or '`} {
		target := Target{Host: "127.0.0.1", Port: 5433, Database: word, User: word, Password: model.NewSecret(word)}
		config, err := pgconn.ParseConfig(target.Conninfo())
		if err != nil {
			t.Errorf("%q: %v", word, err)
			continue
		}
		if config.Host != "127.0.0.1" || config.Port != 5433 || config.Database != word || config.User != word || config.Password != word {
			t.Errorf("%q: %q, %q, %q", word, config.Database, config.User, config.Password)
		}
	}
}
