package objectstoretest

import (
	"fmt"
	"os/exec"
	"testing"

	"github.com/minio/minio-go/v7/pkg/credentials"
)

// machinePolicy is what a machine needs that may not delete.
const machinePolicy = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow",%s"Action":["s3:PutObject","s3:PutObjectRetention","s3:GetObject","s3:GetObjectRetention"],"Resource":"arn:aws:s3:::%[2]s/*"},
{"Effect":"Allow",%[1]s"Action":["s3:ListBucket","s3:GetBucketVersioning","s3:GetBucketObjectLockConfiguration","s3:ListBucketVersions"],"Resource":"arn:aws:s3:::%[2]s"}]}`

// Restricted returns the environment of credentials that may read, write and list
// but not delete in a bucket. MinIO's hold a session token.
func (s *Server) Restricted(t testing.TB, bucket string) Environment {
	t.Helper()
	if s.Name == "minio" {
		return s.session(t, bucket)
	}
	const user, secret = "machine", "machine-secret"
	out, err := exec.Command(s.binary, "admin", "--endpoint-url", s.URL, "--access", s.AccessKey, "--secret", s.SecretKey,
		"create-user", "--access", user, "--secret", secret, "--role", "user").CombinedOutput()
	if err != nil {
		t.Fatalf("create a user of %s: %v: %s", s.Name, err, out)
	}
	policy := fmt.Sprintf(machinePolicy, `"Principal":{"AWS":["`+user+`"]},`, bucket)
	if err := s.admin().SetBucketPolicy(t.Context(), bucket, policy); err != nil {
		t.Fatalf("set the policy of a bucket of %s: %v", s.Name, err)
	}
	return s.Environment("").With("AWS_ACCESS_KEY_ID", user).With("AWS_SECRET_ACCESS_KEY", secret)
}

// session returns temporary credentials of MinIO.
func (s *Server) session(t testing.TB, bucket string) Environment {
	t.Helper()
	c, err := credentials.NewSTSAssumeRole(s.URL, credentials.STSAssumeRoleOptions{
		AccessKey: s.AccessKey, SecretKey: s.SecretKey, DurationSeconds: 3600,
		Policy: fmt.Sprintf(machinePolicy, "", bucket),
	})
	if err != nil {
		t.Fatal(err)
	}
	v, err := c.GetWithContext(nil)
	if err != nil {
		t.Fatalf("assume a role of %s: %v", s.Name, err)
	}
	return s.Environment("").With("AWS_ACCESS_KEY_ID", v.AccessKeyID).
		With("AWS_SECRET_ACCESS_KEY", v.SecretAccessKey).With("AWS_SESSION_TOKEN", v.SessionToken)
}
