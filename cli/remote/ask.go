package remote

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// confirm asks before something that cannot be taken back, or not easily.
// what says it in words: "delete the database shop".
func (t *task) confirm(format string, args ...any) error {
	if t.yes {
		return nil
	}
	what := printable(fmt.Sprintf(format, args...))
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return usagef("this would %s, and there is nobody to ask; --yes says that it is meant", what)
	}
	fmt.Fprintf(t.cmd.ErrOrStderr(), "This will %s. Go on? [y/N] ", what)
	answer, err := t.readLine(os.Stdin)
	if err != nil {
		return err
	}
	if a := strings.ToLower(answer); a != "y" && a != "yes" {
		return failf(exitError, "nothing was done")
	}
	return nil
}

// secret reads a secret: unseen from a terminal, else the first line of
// standard input.
func (t *task) secret(prompt string) (string, error) {
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return t.readLine(os.Stdin)
	}
	before, err := term.GetState(int(os.Stdin.Fd()))
	if err != nil {
		return "", fmt.Errorf("read from the terminal: %w", err)
	}
	fmt.Fprint(t.cmd.ErrOrStderr(), prompt+": ")
	line, err := t.await(func() (string, error) {
		text, err := term.ReadPassword(int(os.Stdin.Fd()))
		return string(text), err
	})
	fmt.Fprintln(t.cmd.ErrOrStderr())
	if t.ctx.Err() != nil { // the read goes on, with the echo off
		_ = term.Restore(int(os.Stdin.Fd()), before)
	}
	return line, err
}

func (t *task) readLine(r io.Reader) (string, error) {
	return t.await(func() (string, error) {
		line, err := bufio.NewReader(r).ReadString('\n')
		if errors.Is(err, io.EOF) && line != "" {
			err = nil
		}
		return strings.TrimRight(line, "\r\n"), err
	})
}

// await reads until an interrupt. A read of a terminal cannot be cancelled:
// it is left behind, for the program to end.
func (t *task) await(read func() (string, error)) (string, error) {
	type result struct {
		line string
		err  error
	}
	results := make(chan result, 1)
	go func() {
		line, err := read()
		results <- result{line, err}
	}()
	select {
	case <-t.ctx.Done():
		return "", t.ctx.Err()
	case r := <-results:
		if errors.Is(r.err, io.EOF) {
			r.err = usagef("standard input ended before there was an answer")
		}
		return r.line, r.err
	}
}
