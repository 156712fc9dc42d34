package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// The variables by which `holdfast run` and `holdfast sandbox` say where the appliance is.
const (
	socketVariable = "HOLDFAST_SANDBOX_SOCKET"
	tokenVariable  = "HOLDFAST_SANDBOX_TOKEN"
	binaryVariable = "HOLDFAST_BINARY"
)

// appliance is how to reach the appliance that has the databases.
type appliance struct {
	socket, token string
}

// find returns the appliance that the environment names. Without one, or if it has ended and
// was a private one, it has one started and names it in the environment of this process,
// for the next tests and for the processes that this one starts.
func find(ctx context.Context) (*appliance, error) {
	a := &appliance{socket: os.Getenv(socketVariable), token: os.Getenv(tokenVariable)}
	if a.socket != "" && (a.token != "" || a.runs(ctx)) {
		return a, nil
	}
	socket, err := start(ctx)
	if err != nil {
		return nil, err
	}
	return &appliance{socket: socket}, os.Setenv(socketVariable, socket)
}

// runs reports whether something listens on the socket.
func (a *appliance) runs(ctx context.Context) bool {
	conn, err := a.dial(ctx)
	if err == nil {
		conn.Close()
	}
	return err == nil
}

func (a *appliance) dial(ctx context.Context) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "unix", a.socket)
}

// start has `holdfast sandbox` start a private appliance unless one runs, and returns its
// socket.
func start(ctx context.Context) (socket string, err error) {
	binary := os.Getenv(binaryVariable)
	if binary == "" {
		if binary, err = exec.LookPath("holdfast"); err != nil {
			return "", fmt.Errorf("there is no holdfast in PATH, so no database: install it, name its program in %s, or run the tests under `holdfast run --`", binaryVariable)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "sandbox")
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("start a private appliance: %s: %w", strings.TrimSpace(said.String()), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// held is a response that stays open for as long as what it gives is wanted.
type held struct {
	body   io.Closer
	cancel context.CancelFunc
}

func (h held) close() {
	h.cancel()
	h.body.Close()
}

// post sends a request and decodes the first line of the response. ctx bounds the wait for it; after that, the
// response stays open until it is closed.
func (a *appliance) post(ctx context.Context, path string, in, out any) (held, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return held{}, err
	}
	open, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	fail := func(err error) (held, error) {
		stop()
		cancel()
		return held{}, errors.Join(ctx.Err(), err)
	}
	request, err := http.NewRequestWithContext(open, http.MethodPost, "http://holdfast"+path, bytes.NewReader(body))
	if err != nil {
		return fail(err)
	}
	if a.token != "" {
		request.Header.Set("Authorization", "Bearer "+a.token)
	}
	answer, err := a.transport().RoundTrip(request)
	if err != nil {
		return fail(a.explain(err))
	}
	if answer.StatusCode != http.StatusOK {
		defer answer.Body.Close()
		return fail(refusal(answer))
	}
	if err := json.NewDecoder(answer.Body).Decode(out); err != nil {
		answer.Body.Close()
		return fail(fmt.Errorf("the appliance ended: %w", err))
	}
	stop()
	return held{answer.Body, cancel}, nil
}

// transport returns a transport for one request: a connection carries one response, which stays open.
func (a *appliance) transport() *http.Transport {
	return &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return a.dial(ctx) },
	}
}

func (a *appliance) explain(err error) error {
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("no appliance runs at %s (%s), so the one of `holdfast run` has ended: %w", a.socket, socketVariable, err)
	}
	return err
}

// refusal returns the error of a response.
func refusal(answer *http.Response) error {
	var problem struct{ Code, Message string }
	if err := json.NewDecoder(answer.Body).Decode(&problem); err != nil || problem.Message == "" {
		return fmt.Errorf("the appliance answered %s: is it of another version?", answer.Status)
	}
	return errors.New(problem.Message)
}
