package remote

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/server/api/wire"
)

func newKeyS3(s *session) *cobra.Command {
	tool := ""
	cmd := s.command("s3", "Show the key as an access key for S3, and configuration for tools", cobra.NoArgs, func(t *task, _ []string) error {
		write, known := s3Tools()[tool]
		if tool != "" && !known {
			return usagef("for: must be one of %s", strings.Join(slices.Sorted(maps.Keys(s3Tools())), ", "))
		}
		return shows(t, func(w io.Writer, c wire.StorageCredentials) {
			switch {
			case known:
				fmt.Fprint(w, write(s3Access{c, text(c.Endpoint)}))
			case c.Endpoint == nil:
				s3Details(w, c, "none: the operator starts one with --s3-listen")
			default:
				s3Details(w, c, *c.Endpoint)
			}
		})(t.api.GetStorageCredentials(t.ctx))
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

// s3Access are credentials and the endpoint they are for, "" if there is none.
type s3Access struct {
	wire.StorageCredentials
	url string
}

// s3Tools returns what writes the configuration of each tool.
func s3Tools() map[string]func(s3Access) string {
	return map[string]func(s3Access) string{
		"aws-cli": func(a s3Access) string {
			return fmt.Sprintf("export AWS_ACCESS_KEY_ID=%s\nexport AWS_SECRET_ACCESS_KEY=%s\nexport AWS_ENDPOINT_URL_S3=%s\nexport AWS_REGION=%s\n",
				a.AccessKeyID, a.SecretAccessKey, a.url, a.Region)
		},
		"boto3": func(a s3Access) string {
			return fmt.Sprintf("import boto3\nfrom botocore.config import Config\n\ns3 = boto3.client(\n    \"s3\",\n    endpoint_url=%q,\n    region_name=%q,\n"+
				"    aws_access_key_id=%q,\n    aws_secret_access_key=%q,\n    config=Config(signature_version=\"s3v4\", s3={\"addressing_style\": \"path\"}),\n)\n",
				a.url, a.Region, a.AccessKeyID, a.SecretAccessKey)
		},
		"litestream": func(a s3Access) string {
			return fmt.Sprintf("dbs:\n  - path: /path/to/database.db\n    replica:\n      type: s3\n      bucket: litestream\n      path: database\n"+
				"      endpoint: %s\n      region: %s\n      access-key-id: %s\n      secret-access-key: %s\n      force-path-style: true\n",
				a.url, a.Region, a.AccessKeyID, a.SecretAccessKey)
		},
		"rclone": func(a s3Access) string {
			return fmt.Sprintf("[holdfast]\ntype = s3\nprovider = Other\nendpoint = %s\nregion = %s\naccess_key_id = %s\nsecret_access_key = %s\nforce_path_style = true\n",
				a.url, a.Region, a.AccessKeyID, a.SecretAccessKey)
		},
		"restic": func(a s3Access) string {
			return fmt.Sprintf("export AWS_ACCESS_KEY_ID=%s\nexport AWS_SECRET_ACCESS_KEY=%s\nexport AWS_DEFAULT_REGION=%s\nexport RESTIC_REPOSITORY=s3:%s/restic\n",
				a.AccessKeyID, a.SecretAccessKey, a.Region, a.url)
		},
	}
}
