package remote

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// confirm asks for confirmation of an action that cannot be undone, or not
// easily. The format describes the action: "delete the database shop".
func (t *task) confirm(format string, args ...any) error {
	if t.yes {
		return nil
	}
	what := printable(fmt.Sprintf(format, args...))
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return usagef("this would %s, and there is nobody to ask; --yes says that it is meant", what)
	}
	fmt.Fprintf(t.cmd.ErrOrStderr(), "This will %s. Go on? [y/N] ", what)
	answer, err := readLine(t.ctx, os.Stdin)
	if err != nil {
		return err
	}
	if a := strings.ToLower(answer); a != "y" && a != "yes" {
		return failf(exitError, "nothing was done")
	}
	return nil
}

// Confirm asks for confirmation before a command outside this package deletes
// something, unless yes is set.
func Confirm(cmd *cobra.Command, yes bool, what string) error {
	t := &task{session: &session{yes: yes}, cmd: cmd, ctx: cmd.Context()}
	return explain(t.confirm("%s", what), "")
}

// Ask prints a question and reads the answer from a terminal. Without one it says
// what to do instead.
func Ask(cmd *cobra.Command, question, instead string) (string, error) {
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return "", usagef("there is nobody to ask; %s", instead)
	}
	fmt.Fprint(cmd.ErrOrStderr(), question)
	line, err := readLine(cmd.Context(), os.Stdin)
	return line, explain(err, "")
}

// Secret reads a secret until ctx ends: from a terminal it prompts and turns
// the echo off, else it reads the first line of standard input.
func Secret(ctx context.Context, terminal io.Writer, prompt string) (string, error) {
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return readLine(ctx, os.Stdin)
	}
	before, err := term.GetState(int(os.Stdin.Fd()))
	if err != nil {
		return "", fmt.Errorf("read from the terminal: %w", err)
	}
	fmt.Fprint(terminal, prompt+": ")
	line, err := await(ctx, func() (string, error) {
		text, err := term.ReadPassword(int(os.Stdin.Fd()))
		return string(text), err
	})
	fmt.Fprintln(terminal)
	if ctx.Err() != nil { // the read continues with the echo off
		_ = term.Restore(int(os.Stdin.Fd()), before)
	}
	return line, unanswered(err)
}

func readLine(ctx context.Context, r io.Reader) (string, error) {
	line, err := await(ctx, func() (string, error) {
		line, err := bufio.NewReader(r).ReadString('\n')
		if errors.Is(err, io.EOF) && line != "" {
			err = nil
		}
		return strings.TrimRight(line, "\r\n"), err
	})
	return line, unanswered(err)
}

// unanswered explains the end of standard input.
func unanswered(err error) error {
	if errors.Is(err, io.EOF) {
		return usagef("standard input ended before there was an answer")
	}
	return err
}

// await waits until do returns or ctx ends. Reading from a terminal and opening
// a pipe cannot be cancelled: such a goroutine ends with the program.
func await[T any](ctx context.Context, do func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	results := make(chan result, 1)
	go func() {
		value, err := do()
		results <- result{value, err}
	}()
	select {
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	case r := <-results:
		return r.value, r.err
	}
}

// Interruptible returns a reader of r that fails once ctx ends. A blocked read
// of r continues until the program ends, as in await.
func Interruptible(ctx context.Context, r io.Reader) io.Reader {
	out, in := io.Pipe()
	go func() {
		_, err := io.Copy(in, r)
		in.CloseWithError(err)
	}()
	context.AfterFunc(ctx, func() { in.CloseWithError(ctx.Err()) })
	return out
}
