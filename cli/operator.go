package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"syscall"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/server"
	"holdfast/server/operator"
)

// callOperator executes an operator command: in the running appliance over its
// socket, or on the files when none runs.
func callOperator(ctx context.Context, c config, request operator.Request, result any) error {
	request.Operator = operatorName()
	if err := mustExist(c.DataDir); err != nil {
		return err
	}
	if err := giveUpRoot(c.DataDir, c.User); err != nil {
		return err
	}
	response, err := askAppliance(ctx, c.DataDir, request)
	if errors.Is(err, errNotRunning) {
		response, err = onFiles(ctx, c, request)
	}
	if err != nil {
		return err
	}
	if response.Code != "" {
		return &model.Error{Code: response.Code, Message: response.Message}
	}
	if err := json.Unmarshal(response.Result, result); err != nil {
		return fmt.Errorf("read the appliance's answer: %w", err)
	}
	return nil
}

// operatorName returns the user who runs the command, also under sudo.
func operatorName() string {
	if name := os.Getenv("SUDO_USER"); name != "" && os.Geteuid() == 0 {
		return name
	}
	return currentUser()
}

var errNotRunning = errors.New("no appliance is running")

// askAppliance sends the command to a running appliance.
func askAppliance(ctx context.Context, dataDir string, request operator.Request) (operator.Response, error) {
	var response operator.Response
	dir, err := postgres.SocketDir(dataDir)
	if err != nil {
		return response, err
	}
	body, err := json.Marshal(request)
	if err != nil {
		return response, fmt.Errorf("encode command: %w", err)
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://holdfast"+operator.Path, bytes.NewReader(body))
	if err != nil {
		return response, err
	}
	answer, err := operatorClient(dir).Do(post)
	if isNotRunning(err) {
		return response, errNotRunning
	}
	if err != nil {
		return response, fmt.Errorf("ask the appliance: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return response, fmt.Errorf("the appliance answered %s: is it of another version?", answer.Status)
	}
	return response, json.NewDecoder(answer.Body).Decode(&response)
}

// dialOperator returns a dialer for the operator's socket in a directory.
func dialOperator(socketDir string) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", server.OperatorSocket(socketDir))
	}
}

func operatorClient(socketDir string) *http.Client {
	dial := dialOperator(socketDir)
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
	}}
}

// isNotRunning reports whether the socket refused the connection or does not
// exist.
func isNotRunning(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, os.ErrNotExist)
}

// onFiles executes the command on the files of a stopped appliance.
func onFiles(ctx context.Context, c config, request operator.Request) (response operator.Response, err error) {
	cfg := c.engine()
	eng, err := openEngine(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return response, err
	}
	defer func() { err = errors.Join(err, eng.Close(ctx)) }()
	appliance := operator.Appliance{Engine: eng, BaseURL: "http://" + defaultListen}
	return appliance.Run(ctx, request), nil
}
