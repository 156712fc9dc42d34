package importer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"holdfast/engine/model"
	"holdfast/internal/address"
	"holdfast/internal/ctxio"
)

// config returns the settings of sessions with the source. It sets everything explicitly: pgx would take missing values
// from PG* variables and files.
func (s Source) config() (*pgx.ConnConfig, error) {
	query := url.Values{"sslmode": {s.sslMode}, "target_session_attrs": {"any"}, "passfile": {"/dev/null"}}
	for _, name := range []string{"sslcert", "sslkey", "sslrootcert", "sslpassword"} {
		query.Set(name, "")
	}
	if s.channelBinding != "" {
		query.Set("channel_binding", s.channelBinding)
	}
	u := url.URL{Scheme: "postgresql", Host: s.address(), User: url.User("-"), Path: "/-", RawQuery: query.Encode()}
	config, err := pgx.ParseConfig(u.String())
	if err != nil {
		return nil, fmt.Errorf("configure session: %w", err)
	}
	config.User, config.Database, config.Password = s.User, s.Database, s.Password.Reveal()
	config.ConnectTimeout = 2 * dialTimeout
	config.DialFunc = s.dial
	config.AfterNetConnect = s.guard
	config.RuntimeParams = map[string]string{"application_name": "holdfast import", "client_encoding": "UTF8"}
	if s.options != "" {
		config.RuntimeParams["options"] = s.options
	}
	// Poolers in between support the simple protocol best.
	config.StatementCacheCapacity, config.DescriptionCacheCapacity = 0, 0
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	return config, nil
}

// connect opens a session with the source. Its error is written for the person who gave the source.
func (s Source) connect(ctx context.Context) (*pgx.Conn, error) {
	config, err := s.config()
	if err != nil {
		return nil, err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, s.explain(ctx, err)
	}
	if err := checkVersion(conn.PgConn().ParameterStatus("server_version")); err != nil {
		_ = conn.Close(context.WithoutCancel(ctx))
		return nil, err
	}
	expect(conn, catalogBounds)
	return conn, nil
}

// poolerPauses are how long an idle client rests before checkPooler tests whether another client gets its session: a
// pooler reclaims a session a moment after the answer, and does not tell when.
var poolerPauses = []time.Duration{0, 10 * time.Millisecond, 100 * time.Millisecond}

// checkPooler refuses a pooler in transaction mode: what pg_dump sets would stay set for the application that gets the
// session next. Such a pooler lends an idle client's session to another client, or gives each transaction another
// session. A made-up process ID in the greeting proves nothing: other poolers do that, too.
func (s Source) checkPooler(ctx context.Context, conn *pgconn.PgConn) error {
	if n, err := readNumber(ctx, conn, backendNumber); err != nil || n == conn.PID() {
		return err
	}
	other, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer other.Close(context.WithoutCancel(ctx))
	for _, rest := range poolerPauses {
		lends, err := sharesSessions(ctx, conn, other.PgConn(), rest)
		if err != nil {
			return err
		}
		if lends {
			return model.Invalid(SourceField, "%s is a pooler that gives each transaction any session, which an import cannot use; "+
				"give the address of the database itself, or the pooler's port for sessions", s.address())
		}
	}
	return nil
}

// backendNumber asks a session for its process ID.
const backendNumber = "select pg_catalog.pg_backend_pid()"

// sharesSessions reports whether conn gets another session, at once or after a rest, or other begins a transaction in conn's
// session.
func sharesSessions(ctx context.Context, conn, other *pgconn.PgConn, rest time.Duration) (bool, error) {
	var numbers [4]uint32
	for i, ask := range []struct {
		conn *pgconn.PgConn
		sql  string
	}{{conn, backendNumber}, {conn, backendNumber}, {other, "begin read only; " + backendNumber}, {conn, backendNumber}} {
		if ask.conn == other {
			if err := ctxio.Sleep(ctx, rest); err != nil {
				return false, err
			}
		}
		var err error
		if numbers[i], err = readNumber(ctx, ask.conn, ask.sql); err != nil {
			return false, err
		}
	}
	n := numbers
	return n[0] != n[1] || n[0] == n[2] || n[0] != n[3], other.Exec(ctx, "rollback").Close()
}

// readNumber returns the number that the last statement answers.
func readNumber(ctx context.Context, conn *pgconn.PgConn, sql string) (uint32, error) {
	results := conn.Exec(ctx, sql)
	var answer string
	rows := 0
	for results.NextResult() {
		for rows = 0; results.ResultReader().NextRow(); rows++ {
			if values := results.ResultReader().Values(); len(values) == 1 {
				answer = oneLine(string(values[0]))
			}
		}
	}
	if err := results.Close(); err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(answer, 10, 32)
	if err != nil || rows != 1 {
		return 0, errors.New("the source answered no number")
	}
	return uint32(n), nil
}

// checkVersion refuses servers that are too old for the import's queries. A version that it cannot parse, such as a
// fork's, is accepted.
func checkVersion(text string) error {
	var major, minor int
	if n, _ := fmt.Sscanf(text, "%d.%d", &major, &minor); n == 2 && (major < 9 || major == 9 && minor < 6) {
		return model.Invalid(SourceField, "the server is PostgreSQL %s; imports are possible from 9.6 and newer, so upgrade it first", oneLine(text))
	}
	return nil
}

// explain tells a person, without secrets, why the connection to the source failed. It does not repeat the answer of an
// address that is not a PostgreSQL server.
func (s Source) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if refusal := s.refusal(); refusal != nil {
		return refusal
	}
	if known, ok := errors.AsType[*model.Error](err); ok && known.Code != model.CodeInternal {
		return known // without pgconn's wrapping
	}
	say := func(format string, args ...any) error {
		return &model.Error{Code: model.CodeValidation, Message: SourceField + ": " + fmt.Sprintf(format, args...), Err: errWithoutText{err}}
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return say("%s", s.explainServer(pg))
	}
	at := s.address()
	if own, ok := errors.AsType[*ownPortError](err); ok {
		return say("%s %s", at, own.reason)
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return say("the host %s is not known to this machine's name servers; see that it is spelled right", s.Host)
	}
	timeout, isNet := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, address.ErrRefused):
		return say("the host %s resolves to an address that is refused (link-local, unspecified or the like)", s.Host)
	case errors.Is(err, syscall.ECONNREFUSED):
		return say("nothing listens at %s; see that the server runs, listens on that address, and that no firewall is between", at)
	case isNet && timeout.Timeout(), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return say("%s does not answer; see that this machine is let in by the firewall there", at)
	case isTLS(err):
		return say("%s and this machine cannot agree on TLS with sslmode=%s; see the server's certificate, or choose another sslmode", at, s.sslMode)
	default:
		return say("%s ended the connection before the log-in was done; see that it is a PostgreSQL server (sslmode is %s)", at, s.sslMode)
	}
}

// explainServer explains a server's refusal to let the user in.
func (s Source) explainServer(pg *pgconn.PgError) string {
	switch {
	case pg.Code == "28P01":
		return fmt.Sprintf("the server does not accept the password of the user %q", s.User)
	case strings.HasPrefix(pg.Code, "28"):
		return fmt.Sprintf("the server does not let the user %q in from this machine (%s); see its pg_hba.conf", s.User, oneLine(pg.Message))
	case pg.Code == "3D000":
		return fmt.Sprintf("the server has no database %q", s.Database)
	case pg.Code == "53300":
		return "the server has no connection left: " + oneLine(pg.Message)
	default:
		return fmt.Sprintf("the server refuses the session (%s): %s", pg.Code, oneLine(pg.Message))
	}
}

func isTLS(err error) bool {
	_, record := errors.AsType[tls.RecordHeaderError](err)
	_, verify := errors.AsType[*tls.CertificateVerificationError](err)
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, alert := errors.AsType[tls.AlertError](err)
	return record || verify || unknown || alert || strings.Contains(err.Error(), "refused TLS") || strings.Contains(err.Error(), "tls: ") || strings.Contains(err.Error(), "x509: ")
}

// errWithoutText keeps an error's kind for its code, but keeps its text out of the log: the text may repeat an
// untrusted answer.
type errWithoutText struct{ error }

func (errWithoutText) Error() string   { return "connect to the source" }
func (e errWithoutText) Unwrap() error { return e.error }

// oneLine makes an untrusted message fit for a log: one line of bounded length. It looks only at the beginning of the
// message, however long that is.
func oneLine(text string) string {
	const longest = 500
	text = text[:min(len(text), 8*longest)]
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	if runes := []rune(text); len(runes) > longest {
		return string(runes[:longest]) + "…"
	}
	return text
}
