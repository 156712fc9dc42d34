package remote

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/cli/client"
	"holdfast/internal/s3tools"
	"holdfast/server/api/wire"
)

func newKeyS3(s *session) *cobra.Command {
	tool := ""
	cmd := s.command("s3", "Show the key as an access key for S3, and configuration for tools", cobra.NoArgs, func(t *task, _ []string) error {
		tools := s3tools.Tools()
		i := slices.IndexFunc(tools, func(t s3tools.Tool) bool { return t.Name == tool })
		if tool != "" && i < 0 {
			var names []string
			for _, t := range tools {
				names = append(names, t.Name)
			}
			return usagef("for: must be one of %s", strings.Join(names, ", "))
		}
		credentials, err := t.api.GetStorageCredentials(t.ctx)
		if client.CodeOf(err) == wire.CodeInsufficientScope {
			return failf(exitForbidden, "%v: without it, the key is of no use for tools that use S3; one with --preset developer has it", err)
		}
		return shows(t, func(w io.Writer, c wire.StorageCredentials) {
			switch {
			case i >= 0:
				fmt.Fprint(w, tools[i].Write(s3tools.Access{ID: c.AccessKeyID, Secret: c.SecretAccessKey, URL: text(c.Endpoint), Region: c.Region}))
			case c.Endpoint == nil:
				s3Details(w, c, "none: the operator starts one with --s3-listen")
			default:
				s3Details(w, c, *c.Endpoint)
			}
		})(credentials, err)
	})
	cmd.Long = "Show the key in use as an access key for the S3 endpoint: it may do there what it may do in the API, until it\n" +
		"is revoked or expires. With --for, print configuration that is ready for a tool."
	cmd.Example = "  holdfast key s3\n  eval \"$(holdfast key s3 --for aws-cli)\" && aws s3 ls\n  holdfast key s3 --for rclone >> ~/.config/rclone/rclone.conf"
	cmd.Flags().StringVar(&tool, "for", "", "print configuration for aws-cli, boto3, litestream, rclone or restic")
	return cmd
}

func s3Details(w io.Writer, c wire.StorageCredentials, endpoint string) {
	details(w, "access key id", c.AccessKeyID, "secret access key", c.SecretAccessKey, "endpoint", endpoint, "region", c.Region)
}
