package remote

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/cli/client"
)

func newAPI(s *session) *cobra.Command {
	var data string
	cmd := s.command("api METHOD PATH", "Send any request to the API, and print its answer", cobra.ExactArgs(2),
		func(t *task, args []string) error { return t.raw(strings.ToUpper(args[0]), args[1], data) })
	cmd.Long = "Send any request to the API, with the key, and print its answer as it is; a stream, such as that of events, as it comes. The exit code is that of the\n" +
		"commands: 0 for a success, else what `holdfast exit-codes` says."
	cmd.Example = "  holdfast api GET /agent/status\n  holdfast api GET '/account/audit-logs?limit=5'\n" +
		"  holdfast api POST /databases --data '{\"project\":\"proj_…\",\"name\":\"shop\"}'\n" +
		"  holdfast api POST /buckets --data @bucket.json"
	cmd.Flags().StringVarP(&data, "data", "d", "", "JSON to send; @FILE reads it from a file, @- from standard input")
	cmd.ValidArgsFunction = completeMethods
	return cmd
}

func completeMethods(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return []cobra.Completion{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}, cobra.ShellCompDirectiveNoFileComp
}

func (t *task) raw(method, path, data string) error {
	r := client.Request{Method: method, Path: "/" + strings.TrimLeft(path, "/")}
	r.Path = strings.TrimPrefix(r.Path, "/v1")
	if _, err := url.Parse(r.Path); err != nil {
		return usagef("path: %q is not a path such as /databases", path)
	}
	if method == http.MethodDelete {
		if err := t.confirm("%s %s", method, r.Path); err != nil {
			return err
		}
	}
	if data != "" {
		body, err := t.readData(data)
		if err != nil {
			return err
		}
		if !json.Valid(body) {
			return usagef("data: is not JSON")
		}
		r.Body, r.Size, r.ContentType = bytes.NewReader(body), int64(len(body)), "application/json"
	}
	answer, err := t.api.Do(t.ctx, r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if kind := answer.Header.Get("Content-Type"); answer.StatusCode < 300 && (kind == "text/event-stream" || kind == "application/x-ndjson") {
		_, err := io.Copy(t.cmd.OutOrStdout(), answer.Body) // line by line, of which there may be no end
		return err
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	refusal := client.Refusal(answer)
	var out bytes.Buffer
	if json.Indent(&out, body, "", "  ") != nil {
		return cmp.Or(refusal, fmt.Errorf("%w: what %s answers is no JSON", client.ErrNotAPI, t.connection.base))
	}
	if _, err := fmt.Fprintln(t.cmd.OutOrStdout(), strings.TrimRight(out.String(), "\n")); err != nil {
		return err
	}
	return refusal
}

func (t *task) readData(data string) ([]byte, error) {
	file, named := strings.CutPrefix(data, "@")
	if !named {
		return []byte(data), nil
	}
	body, err := await(t.ctx, func() ([]byte, error) {
		if file == "-" {
			return io.ReadAll(os.Stdin)
		}
		return os.ReadFile(file)
	})
	if err != nil && t.ctx.Err() == nil {
		err = usagef("data: %v", err)
	}
	return body, err
}
