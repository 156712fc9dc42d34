package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// interruptible reads r until ctx ends. A read of a pipe or terminal cannot be
// cancelled: it is left behind, for the program to end.
func interruptible(ctx context.Context, r io.Reader) io.Reader {
	read, write := io.Pipe()
	context.AfterFunc(ctx, func() { write.CloseWithError(ctx.Err()) })
	go func() {
		_, err := io.Copy(write, r)
		write.CloseWithError(err)
	}()
	return read
}

// readPassword reads one line; at a terminal it asks first, and what is typed
// is not shown.
func readPassword(ctx context.Context, r io.Reader, prompt io.Writer) (string, error) {
	if f, ok := r.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return askPassword(ctx, int(f.Fd()), prompt)
	}
	line, err := bufio.NewReader(interruptible(ctx, r)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the password: %w", err)
	}
	if line = strings.TrimRight(line, "\r\n"); line == "" {
		return "", usageError{errors.New("give the password on standard input, in one line")}
	}
	return line, nil
}

func askPassword(ctx context.Context, terminal int, prompt io.Writer) (string, error) {
	before, err := term.GetState(terminal)
	if err != nil {
		return "", fmt.Errorf("read the password: %w", err)
	}
	fmt.Fprint(prompt, "Password: ")
	defer fmt.Fprintln(prompt)
	var line []byte
	read := make(chan error, 1)
	go func() {
		var err error
		line, err = term.ReadPassword(terminal)
		read <- err
	}()
	select {
	case err := <-read:
		return string(line), err
	case <-ctx.Done(): // the read goes on, with the echo off
		return "", errors.Join(ctx.Err(), term.Restore(terminal, before))
	}
}
