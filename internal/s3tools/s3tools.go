// Package s3tools writes the configuration with which tools use the S3 endpoint.
package s3tools

import "fmt"

// Access is an access key, and the endpoint it is for.
type Access struct{ ID, Secret, URL, Region string }

// Tool is a tool that can be configured.
type Tool struct {
	Name string // as --for has it
	// Where says where the configuration belongs.
	Where string
	Write func(Access) string
}

// Tools returns the tools in the order of their names.
func Tools() []Tool {
	return []Tool{
		{"aws-cli", "a shell", func(a Access) string {
			return fmt.Sprintf("export AWS_ACCESS_KEY_ID=%s\nexport AWS_SECRET_ACCESS_KEY=%s\nexport AWS_ENDPOINT_URL_S3=%s\nexport AWS_REGION=%s\n",
				a.ID, a.Secret, a.URL, a.Region)
		}},
		{"boto3", "Python", func(a Access) string {
			return fmt.Sprintf("import boto3\nfrom botocore.config import Config\n\ns3 = boto3.client(\n    \"s3\",\n    endpoint_url=%q,\n    region_name=%q,\n"+
				"    aws_access_key_id=%q,\n    aws_secret_access_key=%q,\n    config=Config(signature_version=\"s3v4\", s3={\"addressing_style\": \"path\"}),\n)\n",
				a.URL, a.Region, a.ID, a.Secret)
		}},
		{"litestream", "litestream.yml", func(a Access) string {
			return fmt.Sprintf("dbs:\n  - path: /path/to/database.db\n    replica:\n      type: s3\n      bucket: litestream\n      path: database\n"+
				"      endpoint: %s\n      region: %s\n      access-key-id: %s\n      secret-access-key: %s\n      force-path-style: true\n",
				a.URL, a.Region, a.ID, a.Secret)
		}},
		// Keys have no control characters, so rclone must store others in their place.
		{"rclone", "rclone.conf", func(a Access) string {
			return fmt.Sprintf("[holdfast]\ntype = s3\nprovider = Other\nendpoint = %s\nregion = %s\naccess_key_id = %s\nsecret_access_key = %s\nforce_path_style = true\n"+
				"encoding = Slash,InvalidUtf8,Dot,Ctl,Del\n",
				a.URL, a.Region, a.ID, a.Secret)
		}},
		{"restic", "a shell", func(a Access) string {
			return fmt.Sprintf("export AWS_ACCESS_KEY_ID=%s\nexport AWS_SECRET_ACCESS_KEY=%s\nexport AWS_DEFAULT_REGION=%s\nexport RESTIC_REPOSITORY=s3:%s/restic\n",
				a.ID, a.Secret, a.Region, a.URL)
		}},
	}
}
