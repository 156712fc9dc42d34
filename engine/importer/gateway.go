package importer

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"holdfast/engine/model"
)

// Gateway lets the new database's server subscribe to the source: it authenticates each client by a token, opens a
// session with the source for it, and passes bytes. So the server learns neither the source's password nor its address,
// and can reach nothing else.
type Gateway struct {
	ctx      context.Context
	source   Source
	dir      string
	port     int // the number in the socket's name, by which libpq finds it
	token    string
	listener net.Listener
	serving  sync.WaitGroup
	slots    chan struct{}
	trouble  atomic.Pointer[error] // why the last session could not be made, or was ended here
	cancel   context.CancelFunc
}

// gatewayClients is how many clients a gateway serves at a time: the server's worker, and one that replaces it.
const gatewayClients = 4

// OpenGateway creates a socket below dir, which must be private. The caller closes the gateway.
func OpenGateway(ctx context.Context, dir string, source Source) (*Gateway, error) {
	g := &Gateway{source: source, dir: dir, token: rand.Text(), slots: make(chan struct{}, gatewayClients)}
	var err error
	for g.port = 1; g.port <= relays; g.port++ {
		g.listener, err = net.Listen("unix", filepath.Join(dir, ".s.PGSQL."+strconv.Itoa(g.port)))
		if !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open gateway: %w", err)
	}
	g.ctx, g.cancel = context.WithCancel(ctx)
	g.serving.Go(g.accept)
	return g, nil
}

// Close ends all sessions, removes the socket, and waits.
func (g *Gateway) Close() {
	g.cancel()
	_ = g.listener.Close()
	g.serving.Wait()
}

// ConnInfo returns the connection string of the subscription. It contains the token.
func (g *Gateway) ConnInfo() string {
	quote := strings.NewReplacer(`\`, `\\`, `'`, `\'`)
	return fmt.Sprintf("host='%s' port=%d user=import dbname=import password=%s", quote.Replace(g.dir), g.port, g.token)
}

// Trouble returns why the source is not reached, nil if it is.
func (g *Gateway) Trouble() error {
	if err := g.trouble.Load(); err != nil {
		return *err
	}
	return nil
}

func (g *Gateway) accept() {
	for {
		client, err := g.listener.Accept()
		if err != nil {
			return
		}
		select {
		case g.slots <- struct{}{}:
		default:
			_ = client.Close()
			continue
		}
		g.serving.Go(func() {
			defer func() { <-g.slots }()
			defer client.Close()
			g.serve(client)
		})
	}
}

// serve answers one client, until either end or the gateway ends.
func (g *Gateway) serve(client net.Conn) {
	server := pgproto3.NewBackend(client, client)
	_ = client.SetDeadline(time.Now().Add(dialTimeout))
	if err := g.authenticate(client, server); err != nil {
		refuse(server, "28P01", "the gateway of an import admits only its own server")
		return
	}
	_ = client.SetDeadline(time.Time{})
	source := g.source
	source.refused = new(atomic.Pointer[model.Error])
	session, err := openStream(g.ctx, source)
	if err != nil {
		g.trouble.Store(&err)
		refuse(server, "08001", model.PublicMessage(err))
		return
	}
	defer session.Conn.Close()
	if err := greet(server, session); err != nil {
		return
	}
	g.trouble.Store(nil)
	stop := context.AfterFunc(g.ctx, func() { _, _ = session.Conn.Close(), client.Close() })
	defer stop()
	pass(client, session.Conn)
	if refusal := source.refusal(); refusal != nil {
		g.trouble.Store(&refusal)
	}
}

// pass passes bytes both ways until one end closes.
func pass(client, source net.Conn) {
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(client, source)
		_ = client.Close()
	})
	_, _ = io.Copy(source, client)
	_ = source.Close()
	back.Wait()
}

// longestPassword limits what a client may send as the token, in bytes.
const longestPassword = 1 << 10

// authenticate plays the server in a log-in whose password is the token.
func (g *Gateway) authenticate(client net.Conn, server *pgproto3.Backend) error {
	if err := receiveStart(client, server); err != nil {
		return err
	}
	server.SetMaxBodyLen(longestPassword)
	server.Send(&pgproto3.AuthenticationCleartextPassword{})
	if err := server.Flush(); err != nil {
		return err
	}
	if err := server.SetAuthType(pgproto3.AuthTypeCleartextPassword); err != nil {
		return err
	}
	message, err := server.Receive()
	if err != nil {
		return err
	}
	if given, ok := message.(*pgproto3.PasswordMessage); !ok || subtle.ConstantTimeCompare([]byte(given.Password), []byte(g.token)) != 1 {
		return errors.New("not the token")
	}
	return nil
}

func refuse(server *pgproto3.Backend, code, message string) {
	server.Send(&pgproto3.ErrorResponse{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: code, Message: oneLine(message)})
	_ = server.Flush()
}
